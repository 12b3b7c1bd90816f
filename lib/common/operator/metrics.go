package operator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"asterism.dev/lib/common/engine"
)

const (
	// reviewTimeout bounds both reviews of one request for the metrics.
	reviewTimeout = 10 * time.Second
	// reviewedFor is the time for which an allowed request is not reviewed again: the
	// metrics are scraped twice a minute.
	reviewedFor = time.Minute
	// reviewsPerSecond, after a burst of the same size, bounds the load on the API server
	// by requests with unknown tokens.
	reviewsPerSecond = 5
	// unlimitedFor is the time for which this bound does not apply to an allowed request.
	unlimitedFor = time.Hour
)

// authorized serves a request if the API server allows its user to get the path: a
// TokenReview identifies the user, and a SubjectAccessReview checks the rights. The package
// filters of controller-runtime does the same, but imports the API server of Kubernetes:
// more than a third of the program, and 17 MiB of memory.
func authorized(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	reviews, err := client.New(config, client.Options{HTTPClient: httpClient, Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("reviewing requests for the metrics: %w", err)
	}
	known := newReviewed(reviews)
	return func(log logr.Logger, metrics http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			status, err := known.review(request)
			if err != nil {
				log.Error(err, "reviewing a request for the metrics failed")
			}
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			metrics.ServeHTTP(w, request)
		}), nil
	}, nil
}

// creator is the part of a client that reviews need.
type creator interface {
	Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error
}

// reviewed remembers allowed requests. Denied requests are not remembered, because their
// number is not bounded.
type reviewed struct {
	reviews   creator
	allowed   *cache.Expiring // for reviewedFor
	unlimited *cache.Expiring // allowed before, for unlimitedFor
	limit     *rate.Limiter
}

func newReviewed(reviews creator) reviewed {
	return reviewed{reviews: reviews, allowed: cache.NewExpiring(), unlimited: cache.NewExpiring(), limit: rate.NewLimiter(reviewsPerSecond, reviewsPerSecond)}
}

func (r reviewed) review(request *http.Request) (status int, err error) {
	asked := sha256.Sum256([]byte(strings.Join([]string{request.Header.Get("Authorization"), request.Method, request.URL.Path}, "\n")))
	if _, ok := r.allowed.Get(asked); ok {
		return http.StatusOK, nil
	}
	if _, unlimited := r.unlimited.Get(asked); !unlimited && bearer(request) != "" && !r.limit.Allow() {
		engine.Dropped(engine.BoundReviews)
		return http.StatusTooManyRequests, nil
	}
	if status, err = review(request, r.reviews); status == http.StatusOK {
		r.allowed.Set(asked, true, reviewedFor)
		r.unlimited.Set(asked, true, unlimitedFor)
	}
	return status, err
}

// bearer returns the bearer token of a request, "" for none.
func bearer(request *http.Request) string {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// review returns the HTTP status for a request.
func review(request *http.Request, reviews creator) (status int, err error) {
	token := bearer(request)
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	authentication := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := reviews.Create(ctx, authentication); err != nil {
		return http.StatusInternalServerError, err
	}
	if !authentication.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := authentication.Status.User
	access := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: request.URL.Path, Verb: strings.ToLower(request.Method)},
	}}
	for key, values := range user.Extra {
		access.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := reviews.Create(ctx, access); err != nil {
		return http.StatusInternalServerError, err
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
