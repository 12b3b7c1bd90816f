package operator

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiServer knows the tokens of two users, and allows one of them to get the metrics.
type apiServer struct {
	down    bool // reviews fail
	asked   authorizationv1.SubjectAccessReviewSpec
	reviews int
}

func (s *apiServer) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	if s.down {
		return errors.New("down")
	}
	s.reviews++
	switch review := obj.(type) {
	case *authenticationv1.TokenReview:
		known := map[string]string{"token-of-reader": "reader", "token-of-stranger": "stranger"}
		review.Status.User.Username, review.Status.Authenticated = known[review.Spec.Token], known[review.Spec.Token] != ""
		review.Status.User.Groups = []string{"monitoring"}
		review.Status.User.Extra = map[string]authenticationv1.ExtraValue{"pod": {"prometheus-0"}}
	case *authorizationv1.SubjectAccessReview:
		s.asked = review.Spec
		review.Status.Allowed = review.Spec.User == "reader"
	}
	return nil
}

func TestMetricsNeedTheRightToGetThem(t *testing.T) {
	for name, test := range map[string]struct {
		authorization string
		down          bool
		status        int
	}{
		"no token":          {status: http.StatusUnauthorized},
		"no bearer":         {authorization: "Basic token-of-reader", status: http.StatusUnauthorized},
		"an empty token":    {authorization: "Bearer ", status: http.StatusUnauthorized},
		"an unknown token":  {authorization: "Bearer guessed", status: http.StatusUnauthorized},
		"without the right": {authorization: "Bearer token-of-stranger", status: http.StatusForbidden},
		"with the right":    {authorization: "Bearer token-of-reader", status: http.StatusOK},
		"no API server":     {authorization: "Bearer token-of-reader", down: true, status: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://operator:8443/metrics", http.NoBody)
			request.Header.Set("Authorization", test.authorization)
			status, err := review(request, &apiServer{down: test.down})
			if status != test.status || (err != nil) != test.down {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
}

func TestAccessReviewHasAllFieldsOfTheUser(t *testing.T) {
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://operator:8443/metrics", http.NoBody)
	request.Header.Set("Authorization", "Bearer token-of-reader")
	server := &apiServer{}
	if _, err := review(request, server); err != nil {
		t.Fatal(err)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "reader", Groups: []string{"monitoring"}, Extra: map[string]authorizationv1.ExtraValue{"pod": {"prometheus-0"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}
	if !reflect.DeepEqual(server.asked, want) {
		t.Errorf("%+v", server.asked)
	}
}

func TestOnlyAllowedRequestsAreRemembered(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	server := &apiServer{}
	known := reviewed{reviews: server, allowed: cache.NewExpiringWithClock(clock), unlimited: cache.NewExpiring(), limit: rate.NewLimiter(rate.Inf, 0)}
	scrape := func(path, token string, want, reviews int) {
		t.Helper()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://operator:8443"+path, http.NoBody)
		request.Header.Set("Authorization", "Bearer "+token)
		before := server.reviews
		if status, err := known.review(request); err != nil || status != want || server.reviews-before != reviews {
			t.Errorf("%s: %d, %v after %d reviews, want %d after %d", path, status, err, server.reviews-before, want, reviews)
		}
	}
	scrape("/metrics", "token-of-reader", http.StatusOK, 2)
	scrape("/metrics", "token-of-reader", http.StatusOK, 0)
	scrape("/other", "token-of-reader", http.StatusOK, 2)
	for range 2 {
		scrape("/metrics", "token-of-stranger", http.StatusForbidden, 2)
		scrape("/metrics", "guessed", http.StatusUnauthorized, 1)
	}
	clock.Step(reviewedFor + time.Second)
	scrape("/metrics", "token-of-reader", http.StatusOK, 2)
}

// TestReviewsOfUnknownTokensAreLimited: each unknown token needs a review by the API
// server, and any client of the port can send such tokens. A client with the right still
// gets the metrics.
func TestReviewsOfUnknownTokensAreLimited(t *testing.T) {
	server := &apiServer{}
	clock := testingclock.NewFakeClock(time.Now())
	known := newReviewed(server)
	known.allowed = cache.NewExpiringWithClock(clock)
	scrape := func(authorization string) int {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://operator:8443/metrics", http.NoBody)
		request.Header.Set("Authorization", authorization)
		status, _ := known.review(request)
		return status
	}
	if status := scrape("Bearer token-of-reader"); status != http.StatusOK {
		t.Fatal(status)
	}
	before, refused, began := server.reviews, 0, time.Now()
	for range 100 {
		if status := scrape("Basic guessed"); status != http.StatusUnauthorized {
			t.Fatal(status)
		}
		if scrape("Bearer guessed") == http.StatusTooManyRequests {
			refused++
		}
	}
	allowed := reviewsPerSecond + int(reviewsPerSecond*time.Since(began).Seconds()) + 1
	if reviews := server.reviews - before; reviews > allowed || refused != 100-reviews {
		t.Errorf("%d reviews for 100 unknown tokens, %d refused; %d are allowed", reviews, refused, allowed)
	}
	clock.Step(reviewedFor + time.Second)
	if status := scrape("Bearer token-of-reader"); status != http.StatusOK {
		t.Errorf("%d for a token with the right to get the metrics", status)
	}
}
