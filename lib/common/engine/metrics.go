package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1 "asterism.dev/lib/common/api/v1alpha1"
)

const (
	labelKind      = "kind"
	labelCondition = "condition" // of the stage
)

// The values of all labels are names of kinds, stages, reasons and bounds, which are constants of
// the code, and the namespaces and names of reconciled objects and of what they read. A text from
// anywhere else, such as a message, could have a secret in it.
var (
	passDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "asterism_pass_duration_seconds", Help: "Duration of one pass over one object.",
		Buckets: []float64{0.01, 0.1, 1, 5, 15, 60},
	}, []string{labelKind})
	passFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "asterism_pass_failures_total", Help: "Passes that ended with an error and are repeated with back-off, by the reason of the first error.",
	}, []string{labelKind, "reason"})
	doDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "asterism_do_duration_seconds", Help: "Duration of one call of servers outside Kubernetes, by the condition of the stage.",
		Buckets: []float64{0.1, 0.5, 1, 5, 10},
	}, []string{labelKind, labelCondition})
	// Without the namespace: who may create namespaces could create any number of series.
	doWaiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "asterism_do_waiting", Help: "Objects that wait for their turn to call servers, because other objects of their namespace do.",
	}, []string{labelKind})
	jobs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "asterism_jobs_total", Help: "Jobs that have ended, by the condition of the stage and the result: succeeded or failed.",
	}, []string{labelKind, labelCondition, "result"})
	jobDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "asterism_job_duration_seconds", Help: "Duration of a Job that has ended, by the condition of the stage.",
		Buckets: []float64{5, 15, 60, 300, 1800},
	}, []string{labelKind, labelCondition})
	dropped = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "asterism_dropped_total", Help: "Number of times that a limit cut or dropped data, by limit.",
	}, []string{"bound"})
	shown = newObjectMetrics(2000)
)

// maxSources bounds the sources of certificates that are shown for one object.
const maxSources = 16

// A Bound limits what an operator keeps or writes.
type Bound string

// The bounds whose effects are counted.
const (
	BoundConditionMessage Bound = "condition_message" // the end of the message is cut
	BoundHiddenMessage    Bound = "hidden_message"    // of a condition, an event or a log; all of it is hidden, see config.Masks
	BoundEventNote        Bound = "event_note"        // the end of the note is cut
	BoundLabels           Bound = "labels"            // of a watched object; those that nobody reads are dropped
	BoundManagedFields    Bound = "managed_fields"    // an entry of a watched object
	BoundReviews          Bound = "metrics_reviews"   // a request for metrics is refused
)

func init() {
	metrics.Registry.MustRegister(passDuration, passFailures, doDuration, doWaiting, jobs, jobDuration, dropped, shown)
	for _, bound := range []Bound{BoundConditionMessage, BoundHiddenMessage, BoundEventNote, BoundLabels, BoundManagedFields, BoundReviews} {
		dropped.WithLabelValues(string(bound)) // so that the first increase is one
	}
}

// Dropped counts an effect of a bound.
func Dropped(bound Bound) { dropped.WithLabelValues(string(bound)).Inc() }

// measurePass records the end of a pass that began at a time, and the error that Reconcile returns.
func (e *engine) measurePass(began time.Time, err error) {
	passDuration.WithLabelValues(e.kind.Kind).Observe(time.Since(began).Seconds())
	if err != nil {
		e.countFailure(err)
	}
}

// endMetrics removes what the end of the manager leaves in the metrics.
func (e *engine) endMetrics() {
	shown.end(e)
	e.slots.end()
}

func (e *engine) countFailure(err error) {
	passFailures.WithLabelValues(e.kind.Kind, Reason(err)).Inc()
}

// jobEnded returns the function that records the end of a Job of a stage.
func jobEnded(kind string) func(stage string, succeeded bool, took time.Duration) {
	return func(stage string, succeeded bool, took time.Duration) {
		counts := map[bool]prometheus.Counter{true: jobs.WithLabelValues(kind, stage, "succeeded"), false: jobs.WithLabelValues(kind, stage, "failed")}
		counts[succeeded].Inc()
		jobDuration.WithLabelValues(kind, stage).Observe(took.Seconds())
	}
}

// objectMetrics has the conditions Ready and Available of all objects of an operator, those of
// stages that are Shown, and when certificates expire. It shows at most limit objects. An object
// that is shown stays until it is forgotten.
type objectMetrics struct {
	limit                     int
	state, expiries, leftOuts *prometheus.Desc

	mu      sync.Mutex
	engines map[*engine]map[reconcile.Request]*objectState // an operator may have one for each namespace
	showing int                                            // objects
}

type objectState struct {
	conditions map[string]metav1.ConditionStatus // without those that the object does not have
	expiries   map[string]time.Time              // as in pass
	shown      bool
}

func newObjectMetrics(limit int) *objectMetrics {
	return &objectMetrics{
		limit: limit,
		state: prometheus.NewDesc("asterism_condition",
			"1 for the present status (True, False or Unknown) of the condition Ready, and of Available and of conditions with an alert where the kind has them.",
			[]string{labelKind, "namespace", "name", labelCondition, "status"}, nil),
		expiries: prometheus.NewDesc("asterism_certificate_expiry_timestamp_seconds",
			"Unix time at which the first certificate expires in a user's Secret or ConfigMap, the source, that the object reads. A server's certificate counts without its chain, and of several authorities in one value the last to expire. For one object, the 16 sources that expire first.",
			[]string{labelKind, "namespace", "name", "source"}, nil),
		leftOuts: prometheus.NewDesc("asterism_condition_left_out_objects",
			"Objects without asterism_condition and certificates, because an operator shows at most 2000 objects.", []string{labelKind}, nil),
		engines: map[*engine]map[reconcile.Request]*objectState{},
	}
}

// begin shows the objects of an engine from now on, and end forgets them.
func (m *objectMetrics) begin(e *engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engines[e] = map[reconcile.Request]*objectState{}
}

func (m *objectMetrics) end(e *engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for request := range m.engines[e] {
		m.drop(e, request)
	}
	delete(m.engines, e)
}

// set shows the conditions and certificates of an object. A pass that has not read every certificate
// leaves the others as they were, so that an alert does not end and begin again.
func (m *objectMetrics) set(e *engine, request reconcile.Request, conditions []metav1.Condition, expiries map[string]time.Time, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := m.engines[e]
	if objects == nil {
		return
	}
	of := objects[request]
	if of == nil {
		of = &objectState{}
		objects[request] = of
	}
	of.conditions = statesOf(conditions, e.shown)
	if all {
		of.expiries = nil
	}
	of.expiries = firstToExpire(of.expiries, expiries)
}

// firstToExpire returns the maxSources sources that expire first; a source of now replaces its
// earlier expiry.
func firstToExpire(before, now map[string]time.Time) map[string]time.Time {
	all := map[string]time.Time{}
	maps.Copy(all, before)
	maps.Copy(all, now)
	order := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[a].Compare(all[b]), strings.Compare(a, b)) })
	for _, source := range order[min(len(order), maxSources):] {
		delete(all, source)
	}
	return all
}

// statesOf returns the status of Ready, Available and the conditions of some stages.
func statesOf(conditions []metav1.Condition, stages []string) map[string]metav1.ConditionStatus {
	states := map[string]metav1.ConditionStatus{}
	for _, name := range append([]string{commonv1.ConditionReady, commonv1.ConditionAvailable}, stages...) {
		if found := meta.FindStatusCondition(conditions, name); found != nil {
			states[name] = found.Status
		}
	}
	return states
}

func (m *objectMetrics) forget(e *engine, request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(e, request)
}

func (m *objectMetrics) drop(e *engine, request reconcile.Request) {
	if of := m.engines[e][request]; of != nil && of.shown {
		m.showing--
	}
	delete(m.engines[e], request)
}

// Describe is of prometheus.Collector.
func (m *objectMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.state
	descs <- m.expiries
	descs <- m.leftOuts
}

// Collect is of prometheus.Collector.
func (m *objectMetrics) Collect(series chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	leftOut := map[string]int{}
	for e, objects := range m.engines {
		kind := e.kind.Kind
		leftOut[kind] += 0
		for request, of := range objects {
			if !of.shown && m.showing < m.limit {
				of.shown = true
				m.showing++
			}
			if !of.shown {
				leftOut[kind]++
				continue
			}
			m.show(series, kind, request, of)
		}
	}
	for kind, objects := range leftOut {
		series <- prometheus.MustNewConstMetric(m.leftOuts, prometheus.GaugeValue, float64(objects), kind)
	}
}

func (m *objectMetrics) show(series chan<- prometheus.Metric, kind string, request reconcile.Request, of *objectState) {
	for condition, status := range of.conditions {
		series <- prometheus.MustNewConstMetric(m.state, prometheus.GaugeValue, 1, kind, request.Namespace, request.Name, condition, string(status))
	}
	for source, expiry := range of.expiries {
		series <- prometheus.MustNewConstMetric(m.expiries, prometheus.GaugeValue, float64(expiry.Unix()), kind, request.Namespace, request.Name, source)
	}
}
