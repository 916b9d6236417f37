// Evaluates the Filter, Score and preemption plugins of upstream's kube-scheduler on clusters that are read from standard
// input, one JSON object per line, and writes one line per cluster. It is compiled inside the source tree of Kubernetes
// 1.20 (see ../upstream.ts): its snapshot is an internal package.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/core"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/queue"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type cluster struct {
	Nodes       []*v1.Node                           `json:"nodes"`
	Bound       []*v1.Pod                            `json:"bound"`
	Nominated   []*v1.Pod                            `json:"nominated"`
	Pending     []*v1.Pod                            `json:"pending"`
	ReplicaSets []*appsv1.ReplicaSet                 `json:"replicaSets"`
	Budgets     []*policyv1beta1.PodDisruptionBudget `json:"budgets"`
}

type rejection struct {
	Reasons      []string `json:"reasons"`
	IsResolvable bool     `json:"isResolvable"`
}

type candidate struct {
	NodeName   string   `json:"nodeName"`
	Victims    []string `json:"victims"`
	Violations int64    `json:"violations"`
}

// answer holds what upstream decides about one pending pod. Scores are normalised and not weighted.
type answer struct {
	Rejections map[string]rejection        `json:"rejections"`
	Scores     map[string]map[string]int64 `json:"scores"`
	Candidates []candidate                 `json:"candidates"`
	Pick       string                      `json:"pick"`
}

func pluginSet(names ...string) *schedulerconfig.PluginSet {
	set := &schedulerconfig.PluginSet{}
	for _, name := range names {
		set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: name, Weight: 1})
	}
	return set
}

// The default plugins without those of volumes and of preferAvoidPods.
func comparedPlugins() *schedulerconfig.Plugins {
	return &schedulerconfig.Plugins{
		QueueSort: pluginSet("PrioritySort"),
		PreFilter: pluginSet("NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity"),
		Filter: pluginSet("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
			"NodeResourcesFit", "PodTopologySpread", "InterPodAffinity"),
		PreScore: pluginSet("InterPodAffinity", "PodTopologySpread", "TaintToleration"),
		Score: pluginSet("NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity",
			"NodeResourcesLeastAllocated", "NodeAffinity", "PodTopologySpread", "TaintToleration"),
		Bind: pluginSet("DefaultBinder"),
	}
}

func evaluate(input *cluster) ([]answer, error) {
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	replicaSets := factory.Apps().V1().ReplicaSets().Informer().GetIndexer()
	for _, each := range input.ReplicaSets {
		if err := replicaSets.Add(each); err != nil {
			return nil, err
		}
	}
	budgets := factory.Policy().V1beta1().PodDisruptionBudgets().Informer().GetIndexer()
	for _, each := range input.Budgets {
		if err := budgets.Add(each); err != nil {
			return nil, err
		}
	}
	nominator := queue.NewPodNominator()
	for _, each := range input.Nominated {
		nominator.AddNominatedPod(each, each.Status.NominatedNodeName)
	}
	snapshot := cache.NewSnapshot(input.Bound, input.Nodes)
	runner, err := frameworkruntime.NewFramework(plugins.NewInTreeRegistry(), comparedPlugins(), nil,
		frameworkruntime.WithClientSet(fake.NewSimpleClientset()),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithPodNominator(nominator),
	)
	if err != nil {
		return nil, err
	}
	answers := []answer{}
	for _, pod := range input.Pending {
		result, err := evaluatePod(input, pod, runner, snapshot)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		answers = append(answers, *result)
	}
	return answers, nil
}

func evaluatePod(input *cluster, pod *v1.Pod, runner framework.Framework, snapshot *cache.Snapshot) (*answer, error) {
	ctx := context.Background()
	state := framework.NewCycleState()
	if status := runner.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		return nil, fmt.Errorf("PreFilter: %v", status.Message())
	}
	result := &answer{Rejections: map[string]rejection{}, Scores: map[string]map[string]int64{}, Candidates: []candidate{}}
	statuses := framework.NodeToStatusMap{}
	var feasible []*v1.Node
	for _, node := range input.Nodes {
		info, err := snapshot.Get(node.Name)
		if err != nil {
			return nil, err
		}
		fits, status, err := core.PodPassesFiltersOnNode(ctx, runner.PreemptHandle(), state, pod, info)
		if err != nil {
			return nil, err
		}
		if fits {
			feasible = append(feasible, node)
			continue
		}
		statuses[node.Name] = status
		result.Rejections[node.Name] = rejection{
			Reasons:      status.Reasons(),
			IsResolvable: status.Code() == framework.Unschedulable,
		}
	}
	if len(feasible) > 0 {
		return result, addScores(ctx, state, pod, feasible, runner, result)
	}
	return result, addCandidates(ctx, state, pod, statuses, runner, result)
}

func addScores(ctx context.Context, state *framework.CycleState, pod *v1.Pod, feasible []*v1.Node,
	runner framework.Framework, result *answer) error {
	if status := runner.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return fmt.Errorf("PreScore: %v", status.Message())
	}
	scores, status := runner.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return fmt.Errorf("Score: %v", status.Message())
	}
	for plugin, nodes := range scores {
		result.Scores[plugin] = map[string]int64{}
		for _, node := range nodes {
			result.Scores[plugin][node.Name] = node.Score
		}
	}
	return nil
}

func addCandidates(ctx context.Context, state *framework.CycleState, pod *v1.Pod, statuses framework.NodeToStatusMap,
	runner framework.Framework, result *answer) error {
	args := &schedulerconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	plugin, err := defaultpreemption.New(args, runner)
	if err != nil {
		return err
	}
	found, err := plugin.(*defaultpreemption.DefaultPreemption).FindCandidates(ctx, state, pod, statuses)
	if err != nil {
		return err
	}
	for _, each := range found {
		victims := []string{}
		for _, victim := range each.Victims().Pods {
			victims = append(victims, victim.Namespace+"/"+victim.Name)
		}
		result.Candidates = append(result.Candidates,
			candidate{NodeName: each.Name(), Victims: victims, Violations: each.Victims().NumPDBViolations})
	}
	if best := defaultpreemption.SelectCandidate(found); best != nil {
		result.Pick = best.Name()
	}
	return nil
}

func main() {
	klog.InitFlags(flag.CommandLine)
	flag.Parse()
	metrics.Register()
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder := json.NewDecoder(input)
	output := json.NewEncoder(os.Stdout)
	for decoder.More() {
		var next cluster
		err := decoder.Decode(&next)
		var answers []answer
		if err == nil {
			answers, err = evaluate(&next)
		}
		if err == nil {
			err = output.Encode(answers)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
