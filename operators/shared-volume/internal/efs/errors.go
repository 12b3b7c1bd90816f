package efs

import (
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"asterism.dev/lib/common/engine"

	storagev1 "asterism.dev/operators/shared-volume/api/v1alpha1"
)

// meaning is what an error of AWS means for a reader of a condition.
type meaning struct{ reasonOf, text string }

var (
	noRight = meaning{storagev1.ReasonAWSDenied, "the operator may not call elasticfilesystem:%[1]s: add this action to the IAM policy of the operator"}
	noLogin = meaning{storagev1.ReasonAWSDenied, "AWS does not accept the credentials of the operator: correct its access key, or the identity provider and trust policy of spec.aws.roleARN in SharedVolumeDriver cluster"}
	tooFast = meaning{storagev1.ReasonAWSThrottled, "the account sends too many calls to EFS: the operator tries again more slowly"}
	failed  = meaning{storagev1.ReasonAWSUnreachable, "EFS has failed: the operator tries again"}
	refused = meaning{storagev1.ReasonAWSRefused, "EFS refuses %[1]s for file system %[2]s: look at the message of AWS in the operator's log"}
)

// meanings of AWS's error codes.
var meanings = map[string]meaning{
	"AccessDeniedException":             noRight,
	"AccessDenied":                      noLogin, // of STS
	"IDPRejectedClaim":                  noLogin,
	"UnrecognizedClientException":       noLogin,
	"InvalidClientTokenId":              noLogin,
	"InvalidIdentityToken":              noLogin,
	"IncompleteSignature":               noLogin,
	"SignatureDoesNotMatch":             noLogin,
	"InvalidSignatureException":         noLogin,
	"ExpiredToken":                      noLogin,
	"ExpiredTokenException":             noLogin,
	"ThrottlingException":               tooFast,
	"Throttling":                        tooFast,
	"TooManyRequests":                   tooFast,
	"TooManyRequestsException":          tooFast,
	"RequestLimitExceeded":              tooFast,
	"InternalServerError":               failed,
	"ServiceUnavailable":                failed,
	"AccessPointLimitExceeded":          {storagev1.ReasonAWSLimitReached, "file system %[2]s has as many access points as the quota of AWS allows: ask AWS for a higher quota \"Access points for each file system\", or use another file system"},
	"FileSystemNotFound":                {storagev1.ReasonAWSRefused, "file system %[2]s does not exist in this region: correct fileSystemID, or spec.aws.region of SharedVolumeDriver cluster"},
	"FileSystemLimitExceeded":           {storagev1.ReasonAWSLimitReached, "the account has as many file systems as its quota allows: ask AWS for a higher quota \"File systems for each account\""},
	"NetworkInterfaceLimitExceeded":     {storagev1.ReasonAWSLimitReached, "the account has as many network interfaces as its quota allows: ask AWS for a higher quota \"Network interfaces per Region\""},
	"NoFreeAddressesInSubnet":           {storagev1.ReasonAWSRefused, "a subnet in spec.managed.mountTargets has no free address: name another subnet of the zone"},
	"SubnetNotFound":                    {storagev1.ReasonAWSRefused, "a subnet in spec.managed.mountTargets does not exist in this region: create another SharedFileSystem with the right subnets"},
	"SecurityGroupNotFound":             {storagev1.ReasonAWSRefused, "a security group in spec.managed.mountTargets does not exist in the VPC of its subnet"},
	"MountTargetConflict":               {storagev1.ReasonAWSRefused, "two subnets in spec.managed.mountTargets are in one availability zone or in different VPCs, or the zone has a mount target already"},
	"FileSystemInUse":                   {engine.ReasonProgressing, "EFS still deletes the mount targets of file system %[2]s"},
	"IncorrectFileSystemLifeCycleState": {storagev1.ReasonAWSRefused, "file system %[2]s is not available: it is being created, changed or deleted"},
}

// explain turns an error of a call into the outcome of a stage. The text of AWS stays in the
// log: it names the account and the role, and tenants read the condition.
func explain(action, fileSystem string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, errNoKey) {
		return engine.Fail(storagev1.ReasonAWSNotConfigured, fmt.Errorf("%w: create Secret asterism-shared-volume-aws with %s and %s in the operator's namespace, or set spec.aws.roleARN of SharedVolumeDriver cluster", errNoKey, fileKeyID, fileSecret))
	}
	status := 0 // no answer, or one that was cut off
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var answer smithy.APIError
	switch {
	case status < http.StatusBadRequest:
		return engine.Fail(storagev1.ReasonAWSUnreachable, fmt.Errorf("elasticfilesystem:%s: AWS does not answer: check spec.aws.region of SharedVolumeDriver cluster, and the operator's connection to AWS", action)) //nolint:err113 // only a condition shows it
	case !errors.As(err, &answer):
		answer = &smithy.GenericAPIError{Code: http.StatusText(status)}
	}
	found, known := meanings[answer.ErrorCode()]
	if !known {
		found = refused
		if status >= http.StatusInternalServerError {
			found = failed
		}
	}
	text := fmt.Sprintf(found.text+"%.0[1]s%.0[2]s", action, fileSystem)
	return engine.Fail(found.reasonOf, fmt.Errorf("%s: %s%.0w", answer.ErrorCode(), text, err)) // for errors.As
}
