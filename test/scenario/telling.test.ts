import { describe, expect, it } from 'vitest';
import { runSimulate, runStory, scenarioText, withFiles } from './terminal.ts';

const FLEET = '  fleet:\n  - {prefix: a, count: 4, zone: zone-a, podsPerNode: 1}\n';

describe('an expectation that does not hold', () => {
  it('ends with exit code 1, and with file, line, time, node, wanted and found', async () => {
    const { exitCode, errors } = await runStory(
      `${FLEET}  steps:\n  - {at: 60s, silence: [a-3]}\n  - {at: 100s, expect: {nodes: {"a-*": {ready: Unknown}}}}\n`,
    );
    expect(exitCode).toBe(1);
    expect(errors).toHaveLength(4);
    expect(errors[3]).toMatch(/story\.yaml:9: at 1m40s: node a-3: ready: wanted Unknown, found True$/);
  });

  it.each<[string, string, RegExp]>([
    ['nodes: {"b-*": {ready: "True"}}', 'node b-*', /exists: wanted true, found nothing matches/],
    ['nodes: {a-0: {exists: false}}', 'node a-0', /exists: wanted false, found true/],
    ['nodes: {a-0: {reason: NodeStatusUnknown}}', 'node a-0', /reason: wanted NodeStatusUnknown, found KubeletReady/],
    ['nodes: {a-0: {unschedulable: true}}', 'node a-0', /unschedulable: wanted true, found false/],
    ['nodes: {a-0: {taints: ["x:NoSchedule"]}}', 'node a-0', /taints: wanted x:NoSchedule, found none/],
    ['nodes: {a-0: {hasTaints: ["x=y:NoExecute"]}}', 'node a-0', /hasTaints: wanted x=y:NoExecute, found none/],
    ['nodes: {a-0: {podCIDRs: ["10.0.0.0/24"]}}', 'node a-0', /podCIDRs: wanted 10.0.0.0\/24, found none/],
    ['nodes: {a-0: {labels: {none: such}}}', 'node a-0', /labels\[none\]: wanted such, found absent/],
    ['nodes: {a-0: {conditions: {MemoryPressure: "True"}}}', 'node a-0', /MemoryPressure: wanted True, found False/],
    ['pods: {default/a-0-pod-0: {deleting: true}}', 'pod default/a-0-pod-0', /deleting: wanted true, found false/],
    ['pods: {default/a-0-pod-0: {node: a-1}}', 'pod default/a-0-pod-0', /node: wanted a-1, found a-0/],
    ['pods: {default/a-0-pod-0: {node: null}}', 'pod default/a-0-pod-0', /node: wanted none, found a-0/],
    ['pods: {default/a-0-pod-0: {evictionDueIn: 5m}}', 'pod default/a-0-pod-0', /evictionDueIn: wanted 5m, found none/],
    ['pods: {default/a-0-pod-0: {phase: Failed}}', 'pod default/a-0-pod-0', /phase: wanted Failed, found Running/],
    ['workloads: {deployment default/web: {pods: 1}}', 'deployment default/web', /exists: wanted true, found false/],
    ['counts: {podsCreated: 1}', 'counts', /podsCreated: wanted 1, found 0/],
    ['zones: {zone-a: {state: FullDisruption}}', 'zone zone-a', /state: wanted FullDisruption, found Normal/],
    ['zones: {zone-b: {queued: 0}}', 'zone zone-b', /found no such zone; there are "zone-a"/],
    ['zones: {zone-a: {queued: {min: 1}}}', 'zone zone-a', /queued: wanted at least 1, found 0/],
    ['counts: {notReady: {min: 1, max: 2}}', 'counts', /notReady: wanted 1 to 2, found 0/],
    ['events: [{kind: Node, reason: NodeNotReady}]', 'events Node NodeNotReady', /count: wanted at least 1, found 0/],
    ['events: [{kind: Node, name: "a-*", reason: RegisteredNode, count: 5}]', 'events', /count: wanted 5, found 4/],
  ])('%s', async (expectation, subject, said) => {
    const { exitCode, errors } = await runStory(`${FLEET}  steps:\n  - {at: 10s, expect: {${expectation}}}\n`);
    expect(exitCode).toBe(1);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain(`: at 10s: ${subject}`);
    expect(errors[0]).toMatch(said);
  });

  it('does not keep the story, nor the next one, from going on', async () => {
    const texts = {
      'one.yaml': scenarioText(
        `${FLEET}  steps:\n  - {at: 5s, expect: {counts: {tainted: 3}}}\n  - {at: 6s, expect: {counts: {tainted: 4}}}\n`,
      ),
      'two.yaml': scenarioText(`${FLEET}  steps:\n  - {at: 5s, expect: {counts: {tainted: 0}}}\n`),
    };
    const { exitCode, errors, output } = await withFiles(texts, (paths) =>
      runSimulate(paths['one.yaml']!, paths['two.yaml']!, '--store', 'memory'),
    );
    expect(exitCode).toBe(1);
    expect(errors).toHaveLength(2);
    expect(output.join('\n')).toMatch(/short: FAILED in 2 .*short: holds; 1 expectations over 5s/s);
  });
});

describe('expectations that hold', () => {
  it('accept quantities, globs, absence and the words of Kubernetes', async () => {
    const { exitCode, errors } = await runStory(`${FLEET}  steps:
  - {at: 61s, silence: ["a-[01]"]}
  - at: 105s
    expect:
      nodes:
        "a-[01]": {exists: true, ready: Unknown, lacksTaints: ["node.kubernetes.io/not-ready:NoExecute"]}
        "a-[23]": {ready: True, labels: {topology.kubernetes.io/zone: zone-a}}
        "ghost-*": {exists: false}
      pods:
        default/a-0-pod-0: {evictionDueIn: {min: 4m, max: 5m}, ready: False}
        default/a-2-pod-0: {evictionDueIn: null}
        "other/*": {exists: false}
      zones: {zone-a: {evictionRatePerSecond: {max: 0.1}, queued: 1}}
      counts: {tainted: {min: 1}, podsDeleted: 0, nodesDeleted: 0}
      events: [{name: "a-?", reason: NodeNotReady, count: {min: 2, max: 2}}, {reason: Nothing, count: 0}]
`);
    expect(errors).toEqual([]);
    expect(exitCode).toBe(0);
  });
});

describe('steps', () => {
  it('that the API refuses fail the story, unless the step says so', async () => {
    const pod = '{apiVersion: v1, kind: Pod, metadata: {name: UPPER}, spec: {containers: [{name: main, image: main}]}}';
    const refused = await runStory(`${FLEET}  steps:\n  - {at: 5s, apply: ${pod}}\n`);
    expect(refused.exitCode).toBe(1);
    expect(refused.errors[0]).toMatch(/story\.yaml:8: at 5s: apply Pod UPPER: wanted to be done, found refused: 422 /);
    expect((await runStory(`${FLEET}  steps:\n  - {at: 5s, apply: ${pod}, refused: 422}\n`)).exitCode).toBe(0);
    const other = await runStory(`${FLEET}  steps:\n  - {at: 5s, cordon: [a-0], refused: 422}\n`);
    expect(other.errors[0]).toMatch(/wanted refused with 422, found wanted a refusal with 422, found 200/);
    const gone = await runStory(`${FLEET}  steps:\n  - {at: 5s, delete: {kind: Node, name: absent}, refused: 404}\n`);
    expect(gone.exitCode).toBe(0);
  });

  it('go through the API: cordon, taint, patch, delete, and machines that join', async () => {
    const { exitCode, errors } = await runStory(`${FLEET}  steps:
  - {at: 5s, cordon: ["a-[01]"]}
  - at: 5s
    expect:
      nodes: {"a-[01]": {unschedulable: true, taints: ["node.kubernetes.io/unschedulable:NoSchedule"]}, a-2: {taints: []}}
  - {at: 6s, uncordon: [a-0]}
  - {at: 6s, taint: {names: ["a-2"], add: ["team=blue:NoSchedule", "away:NoExecute"]}}
  - at: 6s
    expect:
      nodes:
        a-0: {unschedulable: false, taints: []}
        a-2: {hasTaints: ["team:NoSchedule", "team=blue:NoSchedule", "away:NoExecute"], lacksTaints: ["team=red:NoSchedule"]}
      pods: {default/a-2-pod-0: {deleting: true}}
      counts: {tainted: 0, podsDeleted: 1}
  - {at: 7s, taint: {names: ["a-2"], remove: ["team:NoSchedule"]}}
  - {at: 8s, patch: {kind: Node, name: "a-[23]", merge: {metadata: {labels: {tier: edge}}}}}
  - {at: 9s, delete: {kind: Pod, name: "a-3-*", namespace: default, gracePeriodSeconds: 0}}
  - {at: 9s, beat: [new-0, {name: new-1, zone: zone-b, labels: {tier: edge}, taints: ["dedicated=x:NoSchedule"]}]}
  - at: 9s
    expect:
      nodes:
        a-2: {taints: ["away:NoExecute"], labels: {tier: edge}}
        new-0: {ready: "True", taints: []}
        new-1: {ready: "True", taints: ["dedicated=x:NoSchedule"], labels: {tier: edge, topology.kubernetes.io/zone: zone-b}}
      pods: {"default/a-3-*": {exists: false}}
      counts: {podsDeleted: 2}
  - {at: 10s, expect: {zones: {zone-b: {state: Normal}, "": {state: Normal}}}}
`);
    expect(errors).toEqual([]);
    expect(exitCode).toBe(0);
  });

  it('drain a node of its pods, and delete with a propagation policy', async () => {
    const { exitCode, errors } = await runStory(`${FLEET}  steps:
  - at: 5s
    apply:
      apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: set, namespace: default}
      spec:
        replicas: 2
        selector: {matchLabels: {app: set}}
        template: {metadata: {labels: {app: set}}, spec: {containers: [{name: main, image: set}]}}
  - {at: 20s, expect: {workloads: {replicaset default/set: {ready: 2, pods: 2, zones: {zone-a: 2}}}}}
  - {at: 21s, drain: [a-3]}
  - at: 60s
    expect:
      nodes: {a-3: {unschedulable: true}}
      pods: {default/a-3-pod-0: {exists: false}, default/a-2-pod-0: {deleting: false}}
      workloads: {replicaset default/set: {ready: 2, pods: 2, terminating: 0}}
  - {at: 61s, delete: {kind: ReplicaSet, name: set, namespace: default, propagationPolicy: Orphan}}
  - at: 61s
    expect: {workloads: {replicaset default/set: {exists: false}}, pods: {"default/set-*": {deleting: false}}}
`);
    expect(errors).toEqual([]);
    expect(exitCode).toBe(0);
  });

  it('of EC2 say which machine has no instance, and what EC2 refuses', async () => {
    const without = await runStory(`${FLEET}  steps:\n  - {at: 5s, cloud: {stop: [a-0]}}\n`);
    expect(without.exitCode).toBe(1);
    expect(without.errors[0]).toMatch(/a-0 has no instance/);
    const story = FLEET.replace('zone-a', 'zone-a, providerID: true');
    const refused = await runStory(
      `${story}  steps:\n  - {at: 5s, cloud: {terminate: [a-0]}}\n  - {at: 6s, cloud: {start: [a-0]}}\n`,
    );
    expect(refused.errors[0]).toMatch(/EC2 cannot start the instance of a-0: incorrectState/);
  });

  it('of the agent say that they are not simulated', async () => {
    const { exitCode, errors } = await runStory(
      `${FLEET}  steps:\n  - {at: 5s, agentShutdown: {names: [a-0], how: any}}\n`,
    );
    expect(exitCode).toBe(1);
    expect(errors[0]).toMatch(/agentShutdown is reserved/);
  });

  it('lose the same requests for the same seed, of machines, operators and probes', async () => {
    const story = `${FLEET}  steps:\n  - {at: 5s, ingest: {failShare: 0.5}}\n  - {at: 300s, expect: {}}\n`;
    const told = async (seed: string) => (await runStory(story, '--json', '--seed', seed)).output.slice(0, -1);
    const first = await told('7');
    expect(await told('7')).toEqual(first);
    expect(first.some((line) => line.includes('failingPath'))).toBe(true);
    expect(await told('8')).not.toEqual(first);
  });
});

describe('the timeline', () => {
  const STORY = `${FLEET}  steps:\n  - {at: 60s, silence: ["a-*"]}\n  - {at: 105s, expect: {counts: {notReady: 4}}}\n`;

  it('is aligned, shows zones, and groups equal changes of several subjects', async () => {
    const { output } = await runStory(STORY);
    expect(output[0]).toMatch(/^short \(.*story\.yaml, seed 1\)$/);
    expect(output).toContain('    1m45s  node    a-0 … a-3 (4)           Ready True → Unknown (NodeStatusUnknown)');
    expect(output).toContain('    1m45s  fleet   every zone is dark: total disruption');
    expect(output).toContain('    1m45s  zone    zone-a                  Normal → FullDisruption, evictions stop');
    expect(output.at(-1)).toMatch(/short: holds; 1 expectations over 1m45s/);
  });

  it('is JSON lines when asked for, one a change', async () => {
    const { output } = await runStory(STORY, '--json');
    const lines = output.map((line) => JSON.parse(line));
    const marks = lines.filter(({ kind, text }) => kind === 'node' && /Unknown/.test(text));
    expect(marks.map(({ name }) => name).sort()).toEqual(['a-0', 'a-1', 'a-2', 'a-3']);
    expect(marks[0]).toMatchObject({ scenario: 'short', atSeconds: 105 });
    expect(lines.at(-1)).toMatchObject({ kind: 'result', holds: true, expectations: 1, endSeconds: 105 });
  });

  it('uses another policy on request', async () => {
    const texts = { 'story.yaml': scenarioText(STORY), 'policy.yaml': 'nodeMonitorGracePeriodSeconds: 60\n' };
    const { exitCode, errors } = await withFiles(texts, (paths) =>
      runSimulate(paths['story.yaml']!, '--policy', paths['policy.yaml']!, '--store', 'memory'),
    );
    expect(exitCode).toBe(1);
    expect(errors[0]).toMatch(/notReady: wanted 4, found 0/);
  });
});
