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
)

const (
	// reviewTimeout bounds both questions of one request for the metrics.
	reviewTimeout = 10 * time.Second
	// reviewedFor is how long who may get the metrics is not asked about again:
	// they are scraped twice a minute.
	reviewedFor = time.Minute
	// reviewsPerSecond, after a burst of as many, bounds what a stranger's requests
	// cost the API server.
	reviewsPerSecond = 5
	// regularFor is how long the bound does not hold for a token that was allowed.
	regularFor = time.Hour
)

// authorized serves whom the API server lets get the path: a token is reviewed,
// and then the rights of whose it is. controller-runtime has the same in its
// package filters, which brings Kubernetes' own API server along: more than a
// third of the program, and 17 MiB of what it holds.
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
				log.Error(err, "a request for the metrics could not be reviewed")
			}
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			metrics.ServeHTTP(w, request)
		}), nil
	}, nil
}

// creator is what reviews need of a client.
type creator interface {
	Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error
}

// reviewed remembers whom the API server lets get what. Whom it does not, it is
// asked again: they may be any number.
type reviewed struct {
	reviews creator
	allowed *cache.Expiring
	regular *cache.Expiring // who was allowed a while ago
	limit   *rate.Limiter
}

func newReviewed(reviews creator) reviewed {
	return reviewed{reviews: reviews, allowed: cache.NewExpiring(), regular: cache.NewExpiring(), limit: rate.NewLimiter(reviewsPerSecond, reviewsPerSecond)}
}

func (r reviewed) review(request *http.Request) (status int, err error) {
	asked := sha256.Sum256([]byte(strings.Join([]string{request.Header.Get("Authorization"), request.Method, request.URL.Path}, "\n")))
	if _, ok := r.allowed.Get(asked); ok {
		return http.StatusOK, nil
	}
	if _, regular := r.regular.Get(asked); !regular && bearer(request) != "" && !r.limit.Allow() {
		return http.StatusTooManyRequests, nil
	}
	if status, err = review(request, r.reviews); status == http.StatusOK {
		r.allowed.Set(asked, true, reviewedFor)
		r.regular.Set(asked, true, regularFor)
	}
	return status, err
}

// bearer is the token of a request, "" for none.
func bearer(request *http.Request) string {
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// review says how a request is to be answered.
func review(request *http.Request, reviews creator) (status int, err error) {
	token := bearer(request)
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := reviews.Create(ctx, who); err != nil {
		return http.StatusInternalServerError, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: request.URL.Path, Verb: strings.ToLower(request.Method)},
	}}
	for key, values := range user.Extra {
		may.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := reviews.Create(ctx, may); err != nil {
		return http.StatusInternalServerError, err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
