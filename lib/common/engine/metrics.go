package engine

import (
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
// the code, and the namespaces and names of reconciled objects. A text from anywhere else, such as
// a message, could have a secret in it.
var (
	passDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "asterism_pass_duration_seconds", Help: "Duration of one pass over one object.",
		Buckets: []float64{0.01, 0.1, 1, 5, 15, 60},
	}, []string{labelKind})
	passFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "asterism_pass_failures_total", Help: "Passes that ended with an error and are repeated with back-off, by the reason of the first error.",
	}, []string{labelKind, "reason"})
	doDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "asterism_do_duration_seconds", Help: "Duration of one call of servers outside of Kubernetes, by the condition of the stage.",
		Buckets: []float64{0.1, 0.5, 1, 5, 10},
	}, []string{labelKind, labelCondition})
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
	shown = newConditionMetrics(2000)
)

// A Bound limits what an operator keeps or writes.
type Bound string

// The bounds whose effects are counted.
const (
	BoundConditionMessage Bound = "condition_message" // the end of the message is cut
	BoundEventNote        Bound = "event_note"        // the end of the note is cut
	BoundLabels           Bound = "labels"            // of a watched object; those that nobody reads are dropped
	BoundManagedFields    Bound = "managed_fields"    // an entry of a watched object
	BoundReviews          Bound = "metrics_reviews"   // a request for metrics is refused
)

func init() {
	metrics.Registry.MustRegister(passDuration, passFailures, doDuration, doWaiting, jobs, jobDuration, dropped, shown)
	for _, bound := range []Bound{BoundConditionMessage, BoundEventNote, BoundLabels, BoundManagedFields, BoundReviews} {
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

// conditionMetrics has the conditions Ready and Available of all objects of an operator, and
// shows those of at most limit objects. An object that is shown stays until it is forgotten.
type conditionMetrics struct {
	limit           int
	state, leftOuts *prometheus.Desc

	mu      sync.Mutex
	engines map[*engine]map[reconcile.Request]*conditionsOf // an operator may have one for each namespace
	showing int                                             // objects
}

type conditionsOf struct {
	ready, available metav1.ConditionStatus // "": the object does not have the condition
	shown            bool
}

func newConditionMetrics(limit int) *conditionMetrics {
	return &conditionMetrics{
		limit: limit,
		state: prometheus.NewDesc("asterism_condition",
			"1 for the present status (True, False or Unknown) of the condition Ready, and of Available where the kind has it.",
			[]string{labelKind, "namespace", "name", labelCondition, "status"}, nil),
		leftOuts: prometheus.NewDesc("asterism_condition_left_out_objects",
			"Objects without asterism_condition, because an operator shows the conditions of at most 2000 objects.", []string{labelKind}, nil),
		engines: map[*engine]map[reconcile.Request]*conditionsOf{},
	}
}

// begin shows the objects of an engine from now on, and end forgets them.
func (m *conditionMetrics) begin(e *engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engines[e] = map[reconcile.Request]*conditionsOf{}
}

func (m *conditionMetrics) end(e *engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for request := range m.engines[e] {
		m.drop(e, request)
	}
	delete(m.engines, e)
}

func (m *conditionMetrics) set(e *engine, request reconcile.Request, conditions []metav1.Condition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := m.engines[e]
	if objects == nil {
		return
	}
	of := objects[request]
	if of == nil {
		of = &conditionsOf{}
		objects[request] = of
	}
	of.ready, of.available = statusOf(conditions, commonv1.ConditionReady), statusOf(conditions, commonv1.ConditionAvailable)
}

func statusOf(conditions []metav1.Condition, name string) metav1.ConditionStatus {
	if found := meta.FindStatusCondition(conditions, name); found != nil {
		return found.Status
	}
	return ""
}

func (m *conditionMetrics) forget(e *engine, request reconcile.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(e, request)
}

func (m *conditionMetrics) drop(e *engine, request reconcile.Request) {
	if of := m.engines[e][request]; of != nil && of.shown {
		m.showing--
	}
	delete(m.engines[e], request)
}

// Describe is of prometheus.Collector.
func (m *conditionMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.state
	descs <- m.leftOuts
}

// Collect is of prometheus.Collector.
func (m *conditionMetrics) Collect(series chan<- prometheus.Metric) {
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
			for condition, status := range map[string]metav1.ConditionStatus{commonv1.ConditionReady: of.ready, commonv1.ConditionAvailable: of.available} {
				if status != "" {
					series <- prometheus.MustNewConstMetric(m.state, prometheus.GaugeValue, 1, kind, request.Namespace, request.Name, condition, string(status))
				}
			}
		}
	}
	for kind, objects := range leftOut {
		series <- prometheus.MustNewConstMetric(m.leftOuts, prometheus.GaugeValue, float64(objects), kind)
	}
}
