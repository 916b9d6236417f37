import { describe, expect, it } from 'vitest';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import type { ContainerState, RunningPod } from '../ports/pod-runtime.ts';
import { endedResizes, isContradicted, podStatusOf, rejectedStatus } from './pod-status.ts';

const T0 = Date.UTC(2026, 0, 2, 3, 4, 5);
const running: ContainerState = { kind: 'running', startedAtMs: T0 };
const backingOff: ContainerState = { kind: 'waiting', reason: 'CrashLoopBackOff' };
const exited = (exitCode: number): Extract<ContainerState, { kind: 'terminated' }> => ({
  kind: 'terminated',
  exitCode,
  reason: exitCode === 0 ? 'Completed' : 'Error',
  startedAtMs: T0,
  finishedAtMs: T0 + 1_000,
});

const podOf = (
  restartPolicy: string,
  containers: number,
  inits: readonly Record<string, unknown>[] = [],
): KubeObject => ({
  metadata: { name: 'p', namespace: 'default', uid: 'u' },
  spec: {
    restartPolicy,
    ...(inits.length === 0 ? {} : { initContainers: inits }),
    containers: Array.from({ length: containers }, (_, index) => ({ name: `c${index}`, image: 'busybox' })),
  },
});

const found = (states: readonly ContainerState[], initStates: readonly ContainerState[] = []): RunningPod => ({
  uid: 'u',
  namespace: 'default',
  name: 'p',
  containers: states.map((state, index) => ({
    name: `c${index}`,
    state,
    restartCount: 0,
    ...(state === backingOff ? { lastState: exited(1), lastContainerId: 'exec://u/c/0' } : {}),
  })),
  initContainers: initStates.map((state, index) => ({ name: `i${index}`, state, restartCount: 0 })),
});

const statusOf = (pod: KubeObject, runningPod: RunningPod | undefined, before: Record<string, unknown> = {}) =>
  podStatusOf({ pod, running: runningPod, before, nowMs: T0 + 5_000, hostIp: '192.0.2.7' });

const conditionOf = (status: Readonly<Record<string, unknown>>, type: string) =>
  (status['conditions'] as Record<string, unknown>[]).find((each) => each['type'] === type);

it('names the container of the previous run: its log can be read', () => {
  expect(statusOf(podOf('Always', 1), found([backingOff]))).toMatchObject({
    containerStatuses: [{ lastState: { terminated: { containerID: 'exec://u/c/0' } } }],
  });
});

it('of many containers needs no comparison of each with each', () => {
  let reads = 0;
  const many = found(Array.from({ length: 200 }, () => running));
  const containers = many.containers.map((each) => ({
    ...each,
    get name() {
      reads += 1;
      return each.name;
    },
  }));
  expect(statusOf(podOf('Always', 200), { ...many, containers })).toMatchObject({ phase: 'Running' });
  expect(reads).toBeLessThan(2_000);
});

describe('phase of a pod', () => {
  it.each<[string, ContainerState[], string]>([
    ['Always', [running, running], 'Running'],
    ['Always', [running, backingOff], 'Running'],
    ['Always', [exited(1), exited(1)], 'Running'],
    ['Always', [exited(0), exited(0)], 'Running'],
    ['Always', [running, { kind: 'waiting', reason: 'CreateContainerConfigError' }], 'Pending'],
    ['OnFailure', [exited(0), exited(0)], 'Succeeded'],
    ['OnFailure', [exited(0), exited(1)], 'Running'],
    ['OnFailure', [exited(0), running], 'Running'],
    ['Never', [exited(0), exited(0)], 'Succeeded'],
    ['Never', [exited(0), exited(3)], 'Failed'],
    ['Never', [exited(3), running], 'Running'],
  ])('under %s, %j: %s', (policy, states, phase) => {
    expect(statusOf(podOf(policy, states.length), found(states))['phase']).toBe(phase);
  });

  it.each<[string, string, number, ContainerState[], string]>([
    ['Never', 'Always', 0, [exited(0), exited(0)], 'Running'],
    ['Never', 'OnFailure', 0, [exited(1), exited(0)], 'Running'],
    ['Always', 'Never', 2, [exited(1), exited(1)], 'Failed'],
    ['Always', 'Never', 2, [exited(0), exited(0)], 'Succeeded'],
    ['Always', 'Never', 0, [exited(1), exited(1)], 'Running'],
  ])('under %s, with %s of the first container or of %j, %j: %s', (policy, own, count, states, phase) => {
    const containers = states.map((_, index) => ({ name: `c${index}`, ...(index <= count && { restartPolicy: own }) }));
    const pod = { ...podOf(policy, 0), spec: { restartPolicy: policy, containers } };
    expect(statusOf(pod, found(states))['phase']).toBe(phase);
  });

  it('is Pending before anything of it runs', () => {
    const status = statusOf(podOf('Always', 1), undefined);
    expect(status).toMatchObject({
      phase: 'Pending',
      hostIP: '192.0.2.7',
      startTime: '2026-01-02T03:04:10Z',
      containerStatuses: [{ name: 'c0', ready: false, state: { waiting: { reason: 'ContainerCreating' } } }],
    });
  });

  it('stays where it ended', () => {
    expect(statusOf(podOf('Never', 1), found([running]), { phase: 'Failed' })['phase']).toBe('Failed');
  });

  it('waits for init containers, and fails with one that may not run again', () => {
    const init = [{ name: 'i0' }];
    const waiting: ContainerState = { kind: 'waiting', reason: 'PodInitializing' };
    expect(statusOf(podOf('Never', 1, init), found([waiting], [running]))['phase']).toBe('Pending');
    expect(statusOf(podOf('Never', 1, init), found([waiting], [exited(1)]))['phase']).toBe('Failed');
    expect(statusOf(podOf('Always', 1, init), found([waiting], [exited(1)]))['phase']).toBe('Pending');
    expect(statusOf(podOf('Never', 1, init), found([running], [exited(0)]))['phase']).toBe('Running');
  });

  it('does not wait for the end of a sidecar', () => {
    const status = statusOf(podOf('Always', 1, [{ name: 'i0', restartPolicy: 'Always' }]), found([running], [running]));
    expect(status['phase']).toBe('Running');
    expect(conditionOf(status, 'Ready')).toMatchObject({ status: 'True' });
  });
});

describe('a pod with a rule that restarts all containers', () => {
  const restartPolicyRules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }];
  const cause = { name: 'c0', restartPolicy: 'Never', restartPolicyRules };
  const pod: KubeObject = {
    ...podOf('Never', 0),
    spec: { restartPolicy: 'Never', initContainers: [{ name: 'i0' }], containers: [cause, { name: 'c1' }] },
  };
  const first: ContainerState = { kind: 'waiting', reason: 'PodInitializing' };
  const initialised = { conditions: [{ type: 'Initialized', status: 'True' }] };

  it('does not end with its containers while they restart', () => {
    const killed = { ...found([exited(42), exited(137)], [exited(137)]), restartsAll: true };
    const status = statusOf(pod, killed, initialised);
    expect(status['phase']).toBe('Running');
    expect(conditionOf(status, 'AllContainersRestarting')).toMatchObject({
      status: 'True',
      reason: 'RestartAllContainersStarted',
      message: 'container exited with restart policy rule',
    });
    const facts = { pod, before: {}, nowMs: T0, hostIp: undefined };
    expect(podStatusOf({ ...facts, running: killed, isLast: true })['phase']).toBe('Failed');
  });

  it('is pending and stays initialised when it starts anew', () => {
    const status = statusOf(pod, found([first, first], [running]), initialised);
    expect(status['phase']).toBe('Pending');
    expect(conditionOf(status, 'Initialized')).toMatchObject({ status: 'True' });
    expect(conditionOf(status, 'AllContainersRestarting')).toEqual({
      ...{ type: 'AllContainersRestarting', status: 'False' },
      ...{ lastProbeTime: null, lastTransitionTime: '2026-01-02T03:04:10Z' },
    });
  });

  it.each([
    [0, 'PodCompleted'],
    [1, 'PodFailed'],
  ])('ends with exit code %i, which no rule names: %s', (exitCode, reason) => {
    const ended = statusOf(pod, found([exited(exitCode), exited(0)], [exited(0)]));
    expect(conditionOf(ended, 'AllContainersRestarting')).toMatchObject({ status: 'False', reason });
  });

  it('alone has the condition', () => {
    expect(conditionOf(statusOf(podOf('Never', 1), found([running])), 'AllContainersRestarting')).toBeUndefined();
  });
});

describe('conditions of a pod', () => {
  it('are all true when all runs', () => {
    const status = statusOf(podOf('Always', 1), found([running]));
    for (const type of ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled']) {
      expect(conditionOf(status, type)).toMatchObject({ status: 'True', lastTransitionTime: '2026-01-02T03:04:10Z' });
    }
  });

  it('name the containers that are not ready', () => {
    expect(conditionOf(statusOf(podOf('Always', 2), found([running, backingOff])), 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotReady',
      message: 'containers with unready status: [c1]',
    });
  });

  it('keep the time of their last change, and leave conditions of others alone', () => {
    const before = {
      conditions: [
        { type: 'Ready', status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z' },
        { type: 'example.com/gate', status: 'True', lastTransitionTime: '2025-01-01T00:00:00Z' },
      ],
    };
    const status = statusOf(podOf('Always', 1), found([running]), before);
    expect(conditionOf(status, 'Ready')).toMatchObject({ lastTransitionTime: '2025-01-01T00:00:00Z' });
    expect(conditionOf(status, 'example.com/gate')).toBeUndefined();
  });

  it('say that a pod completed', () => {
    expect(conditionOf(statusOf(podOf('Never', 1), found([exited(0)])), 'Ready')).toMatchObject({
      status: 'False',
      reason: 'PodCompleted',
    });
  });
});

describe('status of a container', () => {
  it('reports how it terminated, by code, signal and time', () => {
    const killed: ContainerState = { ...exited(137), signal: 9 };
    expect(statusOf(podOf('Never', 1), found([killed]))['containerStatuses']).toMatchObject([
      {
        ready: false,
        state: {
          terminated: {
            exitCode: 137,
            signal: 9,
            reason: 'Error',
            startedAt: '2026-01-02T03:04:05Z',
            finishedAt: '2026-01-02T03:04:06Z',
          },
        },
      },
    ]);
  });
});

describe('a refused pod', () => {
  it('is Failed, with the reason', () => {
    expect(rejectedStatus({ phase: 'Pending' }, { reason: 'OutOfcpu', message: 'no room' }, T0)).toEqual({
      phase: 'Failed',
      reason: 'OutOfcpu',
      message: 'Pod was rejected: no room',
      startTime: '2026-01-02T03:04:05Z',
    });
  });
});

describe('the readiness gates of a pod', () => {
  const gated = (conditions: readonly object[] | undefined): KubeObject => {
    const pod = podOf('Always', 1);
    return {
      ...pod,
      spec: { ...(pod.spec as object), readinessGates: [{ conditionType: 'a.example/up' }, { conditionType: 'b' }] },
      ...(conditions === undefined ? {} : { status: { conditions } }),
    };
  };
  const readyOf = (conditions?: readonly object[]) =>
    conditionOf(statusOf(gated(conditions), found([running])), 'Ready');

  it('are conditions that others write', () => {
    const up = { type: 'a.example/up', status: 'True' };
    expect(readyOf([up, { type: 'b', status: 'True' }])).toMatchObject({ status: 'True' });
    expect(readyOf([up, { type: 'b', status: 'False' }])).toMatchObject({
      status: 'False',
      reason: 'ReadinessGatesNotReady',
      message: 'the status of pod readiness gate "b" is not "True", but False',
    });
  });

  it('that no client has written are false', () => {
    expect(readyOf()).toMatchObject({
      reason: 'ReadinessGatesNotReady',
      message:
        'corresponding condition of pod readiness gate "a.example/up" does not exist., ' +
        'corresponding condition of pod readiness gate "b" does not exist.',
    });
  });

  it('are no matter of a pod that is not ready', () => {
    const waiting = found([{ kind: 'waiting', reason: 'ContainerCreating' }]);
    expect(conditionOf(statusOf(gated([]), waiting), 'Ready')).toMatchObject({ reason: 'ContainersNotReady' });
    expect(conditionOf(statusOf(gated([]), found([running])), 'ContainersReady')).toMatchObject({ status: 'True' });
  });
});

describe('a status that another client changed', () => {
  const conditions = [
    { type: 'Ready', status: 'True' },
    { type: 'PodScheduled', status: 'True' },
  ];
  const reported = { phase: 'Running', conditions };
  it.each<[string, Readonly<Record<string, unknown>> | undefined, boolean]>([
    ['is none that was not read', undefined, false],
    ['is the same status', { phase: 'Running', conditions }, false],
    [
      'may have more conditions',
      { phase: 'Running', conditions: [...conditions, { type: 'x', status: 'False' }] },
      false,
    ],
    ['has another phase', { phase: 'Failed', conditions }, true],
    [
      'has another condition',
      { phase: 'Running', conditions: [conditions[0], { type: 'PodScheduled', status: 'False' }] },
      true,
    ],
    ['lacks a condition', { phase: 'Running', conditions: conditions.slice(1) }, true],
  ])('%s', (_, stored, expected) => {
    expect(isContradicted(reported, stored)).toBe(expected);
    expect(isContradicted(undefined, stored)).toBe(false);
  });
});

describe('the addresses of a pod', () => {
  const addressesOf = (ip: string | undefined, hostIp: string | undefined) => {
    const runningPod = { ...found([running]), ...(ip === undefined ? {} : { ip }) };
    const status = podStatusOf({ pod: podOf('Always', 1), running: runningPod, before: {}, nowMs: T0, hostIp });
    const { hostIP, hostIPs, podIP, podIPs } = status;
    return { hostIP, hostIPs, podIP, podIPs };
  };
  const none = { hostIP: undefined, hostIPs: undefined, podIP: undefined, podIPs: undefined };
  const ofHost = { hostIP: '192.0.2.7', hostIPs: [{ ip: '192.0.2.7' }] };

  it.each<[string | undefined, string | undefined, object]>([
    ['10.88.0.7', '192.0.2.7', { ...ofHost, podIP: '10.88.0.7', podIPs: [{ ip: '10.88.0.7' }] }],
    [undefined, '192.0.2.7', { ...ofHost, podIP: '192.0.2.7', podIPs: [{ ip: '192.0.2.7' }] }],
    ['', '192.0.2.7', { ...none, ...ofHost }],
    [undefined, undefined, none],
  ])('%s on a machine with %s', (ip, hostIp, expected) => {
    expect(addressesOf(ip, hostIp)).toEqual(expected);
  });
});

it.each<[boolean | undefined, string, string | undefined]>([
  [true, 'Running', 'True'],
  [false, 'Running', 'False'],
  [true, 'Failed', 'False'],
  [undefined, 'Running', undefined],
])('a pod that may start (%s) and is %s says %s', (mayStart, phase, status) => {
  const facts = { pod: podOf('Always', 1), running: found([running]), nowMs: T0, hostIp: undefined };
  const computed = podStatusOf({ ...facts, before: { phase }, ...(mayStart === undefined ? {} : { mayStart }) });
  expect(conditionOf(computed, 'PodReadyToStartContainers')?.['status']).toBe(status);
});

it('keeps the reason, the message and the start time of before', () => {
  const before = { phase: 'Failed', reason: 'Evicted', message: 'no disk', startTime: '2026-01-01T00:00:00Z' };
  expect(statusOf(podOf('Always', 1), found([running]), before)).toMatchObject(before);
  expect(Object.keys(statusOf(podOf('Always', 1), found([running])))).not.toContain('reason');
  expect(Object.keys(statusOf(podOf('Always', 1), found([running])))).not.toContain('message');
});

describe('the resources of a pod', () => {
  const [small, large] = [{ requests: { cpu: '1' } }, { requests: { cpu: '2' } }];
  const sized = (resources: object): KubePod => ({
    metadata: { name: 'p', uid: 'u', generation: 4 },
    spec: { containers: [{ name: 'c0', resources }] },
  });
  const shown = (given: Partial<RunningPod['containers'][number]>, recorded?: KubePod) => {
    const [container] = found([running]).containers;
    const runs = { ...found([]), ...(recorded && { pod: recorded }), containers: [{ ...container!, ...given }] };
    const [status] = statusOf(sized(large), runs)['containerStatuses'] as object[];
    return status;
  };

  it('are the allocated ones, and those that a container runs with', () => {
    const allocatedResources = large.requests;
    expect(shown({})).toMatchObject({ allocatedResources, resources: large });
    expect(shown({ resources: small })).toMatchObject({ allocatedResources, resources: small });
    expect(shown({}, sized(small))).toMatchObject({ allocatedResources, resources: small });
    expect(shown({ state: exited(1), resources: small })).toMatchObject({ allocatedResources, resources: large });
    const [none] = statusOf(podOf('Always', 1), found([running]))['containerStatuses'] as object[];
    expect(Object.keys(none ?? {})).not.toContain('resources');
  });

  it('are those of every container, if any has some: the API asks the first one whether its node can resize', () => {
    const pod = sized(large);
    const [first] = found([running]).containers;
    const mixed = { ...pod, spec: { containers: [{ name: 'bare' }, ...(pod.spec?.containers ?? [])] } };
    const runs = { ...found([]), containers: [{ ...first!, name: 'bare' }, first!] };
    const [bare, full] = statusOf(mixed, runs)['containerStatuses'] as object[];
    expect([bare, full]).toMatchObject([{ resources: {} }, { resources: large }]);
    expect(bare).not.toHaveProperty('allocatedResources');
  });

  it('have no conditions once the pod has terminated', () => {
    const resize = { pending: { reason: 'Deferred', message: 'why' }, inProgress: {} } as const;
    const facts = { pod: sized(large), before: { phase: 'Failed' }, nowMs: T0, hostIp: undefined };
    const status = podStatusOf({ ...facts, running: found([exited(1)]), resize });
    expect(conditionOf(status, 'PodResizePending')).toBeUndefined();
    expect(conditionOf(status, 'PodResizeInProgress')).toBeUndefined();
  });

  it('have conditions while a resize is pending or in progress', () => {
    const facts = { pod: sized(large), running: found([running]), before: {}, nowMs: T0, hostIp: undefined };
    const pending = { reason: 'Deferred', message: 'why', generation: 4 } as const;
    const status = podStatusOf({ ...facts, resize: { pending, inProgress: { generation: 3, error: 'busy' } } });
    expect(status['observedGeneration']).toBe(4);
    const lastTransitionTime = '2026-01-02T03:04:05Z';
    const common = { status: 'True', lastProbeTime: null, lastTransitionTime };
    expect(conditionOf(status, 'PodResizePending')).toEqual({
      ...common,
      type: 'PodResizePending',
      reason: 'Deferred',
      message: 'why',
      observedGeneration: 4,
    });
    const inProgress = { ...common, type: 'PodResizeInProgress', observedGeneration: 3 };
    expect(conditionOf(status, 'PodResizeInProgress')).toEqual({ ...inProgress, reason: 'Error', message: 'busy' });
    const next = podStatusOf({
      ...facts,
      before: status,
      nowMs: T0 + 9_000,
      resize: { inProgress: { generation: 3 } },
    });
    expect(conditionOf(next, 'PodResizeInProgress')).toEqual(inProgress);
    expect(endedResizes(status, next)).toEqual(['PodResizePending']);
    expect(endedResizes(undefined, next)).toEqual([]);
  });
});
