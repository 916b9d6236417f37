import { describe, expect, it } from 'vitest';
import { causeText } from '../../kubernetes/status.ts';
import type { PrepareContext } from '../descriptor.ts';
import type { KubeObject, KubePod } from '../types.ts';
import { bindPod } from './bind-pod.ts';
import { resolvePriority } from './pod-admission.ts';
import { podQosClass, qosClassOf } from './pod-needs.ts';
import { pods } from './serve.ts';

type Json = Record<string, unknown>;

const nowMs = Date.UTC(2001, 1, 3, 4, 5, 11);
const main = { name: 'main', image: 'registry.example/app:1' };
const create = (spec: Json = {}, context: PrepareContext = { nowMs }): KubeObject =>
  pods.prepareForCreate(
    { metadata: { name: 'p-1', namespace: 'default' }, spec: { containers: [main], ...spec } },
    context,
  );
const complaints = (pod: KubeObject, old?: KubeObject, subresource = ''): string[] =>
  pods
    .validate(pod, { operation: old === undefined ? 'create' : 'update', subresource, ...(old && { old }) })
    .map(causeText);
const notReady = (tolerationSeconds: number) => ({
  key: 'node.kubernetes.io/not-ready',
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds,
});
const unreachable = (tolerationSeconds: number) => ({
  ...notReady(tolerationSeconds),
  key: 'node.kubernetes.io/unreachable',
});

describe('a new pod', () => {
  it('is stored with every default an API server fills in', () => {
    const pod = create({
      containers: [
        {
          ...main,
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: '0.5', memory: '64Mi' } },
          livenessProbe: { httpGet: { path: '/', port: 80 } },
        },
      ],
      volumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'conf', configMap: { name: 'c' } },
      ],
    });
    expect(pod).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p-1', namespace: 'default', generation: 1 },
      spec: {
        containers: [
          {
            ...main,
            imagePullPolicy: 'IfNotPresent',
            livenessProbe: {
              failureThreshold: 3,
              httpGet: { path: '/', port: 80, scheme: 'HTTP' },
              periodSeconds: 10,
              successThreshold: 1,
              timeoutSeconds: 1,
            },
            ports: [{ containerPort: 80, protocol: 'TCP' }],
            resources: { limits: { cpu: '500m', memory: '64Mi' }, requests: { cpu: '500m', memory: '64Mi' } },
            terminationMessagePath: '/dev/termination-log',
            terminationMessagePolicy: 'File',
          },
        ],
        dnsPolicy: 'ClusterFirst',
        enableServiceLinks: true,
        preemptionPolicy: 'PreemptLowerPriority',
        priority: 0,
        restartPolicy: 'Always',
        schedulerName: 'default-scheduler',
        securityContext: {},
        terminationGracePeriodSeconds: 30,
        tolerations: [notReady(300), unreachable(300)],
        volumes: [
          { name: 'scratch', emptyDir: {} },
          { name: 'conf', configMap: { name: 'c', defaultMode: 420 } },
        ],
      },
      status: { phase: 'Pending', qosClass: 'Guaranteed' },
    });
    expect(complaints(pod)).toEqual([]);
    expect(pods.prepareForCreate(pod, { nowMs })).toEqual(pod);
  });

  it.each([
    ['registry.example/app', 'Always'],
    ['registry.example:5000/app', 'Always'],
    ['registry.example/app:latest', 'Always'],
    ['registry.example/app:1', 'IfNotPresent'],
    ['app@sha256:aa', 'IfNotPresent'],
  ])('pulls %s %s', (image, policy) => {
    expect(create({ containers: [{ name: 'main', image }] }).spec?.['containers']).toMatchObject([
      { imagePullPolicy: policy },
    ]);
  });

  it('tolerates an unhealthy node for the time in the policy', () => {
    expect(create().spec?.['tolerations']).toEqual([notReady(300), unreachable(300)]);
    const context = { nowMs, defaultTolerationSeconds: 30 };
    expect(create({}, context).spec?.['tolerations']).toEqual([notReady(30), unreachable(30)]);
  });

  it('DT-03 keeps its own toleration', () => {
    expect(create({ tolerations: [unreachable(5)] }).spec?.['tolerations']).toEqual([unreachable(5), notReady(300)]);
  });

  it('gets the priority of its class', () => {
    const priority = { priority: 1000, priorityClassName: 'urgent', preemptionPolicy: 'Never' } as const;
    expect(create({ priorityClassName: 'urgent' }, { nowMs, priority }).spec).toMatchObject(priority);
  });

  it('starts with a status of its own', () => {
    expect(
      pods.prepareForCreate(
        { metadata: { name: 'p' }, spec: { containers: [main] }, status: { phase: 'Running' } },
        { nowMs },
      ).status,
    ).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
  });
});

describe('a pod that is refused', () => {
  it.each<[string, Json, (string | RegExp)[]]>([
    ['no container', { containers: [] }, ['spec.containers: Required value']],
    ['two containers of one name', { containers: [main, main] }, ['spec.containers[1].name: Duplicate value: "main"']],
    [
      'an init container named like another',
      { initContainers: [main] },
      ['spec.initContainers[0].name: Duplicate value: "main"'],
    ],
    ['no image', { containers: [{ name: 'main' }] }, ['spec.containers[0].image: Required value']],
    [
      'an unknown restart policy',
      { restartPolicy: 'Sometimes' },
      ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
    ],
    [
      'a request above its limit',
      { containers: [{ ...main, resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } }] },
      [/^spec\.containers\[0\]\.resources\.requests: Invalid value: "2": must be less than or equal to cpu limit/],
    ],
    [
      'a quantity that is none',
      { containers: [{ ...main, resources: { limits: { cpu: 'much' } } }] },
      [/limits\[cpu\]: Invalid value: "much"/, /requests\[cpu\]: Invalid value: "much"/],
    ],
    [
      'an unknown resource',
      { containers: [{ ...main, resources: { requests: { gpu: '1' } } }] },
      [
        /requests\[gpu\]: Invalid value: "gpu": must be a standard resource type or fully qualified/,
        /requests\[gpu\]: Invalid value: "gpu": must be a standard resource for containers/,
      ],
    ],
    [
      'a mount of no volume',
      { containers: [{ ...main, volumeMounts: [{ name: 'data', mountPath: '/data' }] }] },
      ['spec.containers[0].volumeMounts[0].name: Not found: "data"'],
    ],
    [
      'a port out of range',
      { containers: [{ ...main, ports: [{ containerPort: 70_000 }] }] },
      ['spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive'],
    ],
    [
      'a negative grace period',
      { terminationGracePeriodSeconds: -1 },
      ['spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0'],
    ],
    [
      'seconds on a toleration without NoExecute',
      { tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 5 }] },
      [
        'spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' when `tolerationSeconds` is set',
      ],
    ],
    [
      'a toleration of everything that compares',
      { tolerations: [{ effect: 'NoExecute' }] },
      [/^spec\.tolerations\[0\]\.operator: Invalid value: "": operator must be Exists when `key` is empty/],
    ],
    [
      'a bad node name',
      { nodeName: 'Bad_Name' },
      [/^spec\.nodeName: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain/],
    ],
    [
      'two sources for one volume',
      { volumes: [{ name: 'v', emptyDir: {}, hostPath: { path: '/' } }] },
      ['spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type'],
    ],
  ])('has %s', (_what, spec, expected) => {
    expect(complaints(create(spec))).toEqual(
      expected.map((text) => (typeof text === 'string' ? text : expect.stringMatching(text))),
    );
  });
});

describe('a changed pod', () => {
  const gpu = { key: 'gpu', operator: 'Exists' };
  const old = create({ nodeName: 'kw-1', activeDeadlineSeconds: 100, tolerations: [gpu] });
  const update = (spec: Json, subresource = '', status?: Json): KubeObject =>
    pods.prepareForUpdate({ ...old, spec: { ...old.spec, ...spec }, ...(status && { status }) }, old, {
      nowMs,
      subresource,
    });

  it('may have other images, more tolerations, other seconds and an earlier deadline', () => {
    const next = update({
      containers: [{ ...main, image: 'registry.example/app:2', imagePullPolicy: 'IfNotPresent' }],
      tolerations: [notReady(0), gpu, unreachable(300), { key: 'a', operator: 'Exists' }],
      activeDeadlineSeconds: 50,
    });
    expect(complaints(next, old)).toEqual([]);
  });

  it.each<[string, Json, RegExp]>([
    ['node', { nodeName: 'kw-2' }, /^spec: Forbidden: pod updates may not change fields other than/],
    ['containers', { containers: [main, { ...main, name: 'b' }] }, /pod updates may not add or remove containers/],
    [
      'tolerations',
      { tolerations: [notReady(300), unreachable(300)] },
      /existing toleration can not be modified except/,
    ],
    ['deadline', { activeDeadlineSeconds: 101 }, /must be less than or equal to previous value/],
  ])('may not change its %s', (_what, spec, text) => {
    expect(complaints(update(spec), old)).toEqual([expect.stringMatching(text)]);
  });

  describe('with scheduling gates', () => {
    const zone = { key: 'zone', operator: 'In', values: ['a'] };
    const disk = { key: 'disk', operator: 'Exists' };
    const terms = (...nodeSelectorTerms: Json[]) => ({
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
    });
    const gates = { schedulingGates: [{ name: 'example.com/a' }] };
    const selected = { nodeSelector: { os: 'linux' } };
    const complaintsOf = (before: Json, after: Json) => {
      const was = create({ ...gates, ...before });
      const spec = { ...was.spec, ...after };
      return complaints(pods.prepareForUpdate({ ...was, spec }, was, { nowMs, subresource: '' }), was);
    };

    it.each<[string, Json, Json]>([
      ['a node selector', {}, selected],
      ['more of it', selected, { nodeSelector: { os: 'linux', zone: 'a' } }],
      ['a node affinity', {}, terms({ matchExpressions: [zone] })],
      ['more of a term', terms({ matchExpressions: [zone] }), terms({ matchExpressions: [zone, disk] })],
    ])('gets %s', (_what, before, after) => {
      expect(complaintsOf(before, after)).toEqual([]);
    });

    const requiredDuringSchedulingIgnoredDuringExecution = [{ labelSelector: {}, topologyKey: 'zone' }];
    const nearPods = { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution } } };
    const only = /^spec\..*: only additions are allowed \(no mutations or deletions\)$/;
    it.each<[string, Json, Json, RegExp]>([
      ['another value in its node selector', selected, { nodeSelector: { os: 'windows' } }, only],
      ['less of a term', terms({ matchExpressions: [zone, disk] }), terms({ matchExpressions: [disk] }), only],
      ['a second term', terms({ matchExpressions: [zone] }), terms({ matchExpressions: [zone] }, {}), /no additions/],
      ['another affinity than to nodes', {}, nearPods, /^spec: Forbidden: pod updates may not/],
    ])('does not get %s', (_what, before, after, text) => {
      expect(complaintsOf(before, after)).toEqual([expect.stringMatching(text)]);
    });
  });

  it('may not get a node selector without scheduling gates', () => {
    expect(complaints(update({ nodeSelector: { os: 'linux' } }), old)).toEqual([expect.stringMatching(/^spec: Forb/)]);
  });

  it('keeps its default tolerations: removed ones are added again', () => {
    expect(update({ tolerations: [] }).spec?.['tolerations']).toEqual([notReady(300), unreachable(300)]);
  });

  it('keeps its status, and its spec and owners when only the status is written', () => {
    expect(update({}, '', { phase: 'Running' }).status).toEqual(old.status);
    const next = update({ nodeName: 'kw-2' }, 'status', {
      phase: 'Running',
      podIP: '10.1.0.7',
      conditions: [{ type: 'Ready', status: 'True', lastProbeTime: null }],
    });
    expect(next.spec).toEqual(old.spec);
    expect(next.status).toEqual({
      phase: 'Running',
      podIP: '10.1.0.7',
      podIPs: [{ ip: '10.1.0.7' }],
      conditions: [{ type: 'Ready', status: 'True', lastProbeTime: null, lastTransitionTime: null }],
      qosClass: 'BestEffort',
    });
    expect(complaints(next, old, 'status')).toEqual([]);
    expect(complaints(update({}, 'status', { phase: 'Gone', podIP: 'x' }), old, 'status')).toHaveLength(2);
  });
});

describe('binding', () => {
  it('binds a pod to a node once', () => {
    const outcome = bindPod(create(), 'kw-1', nowMs);
    if (outcome.kind !== 'bound') throw new Error(outcome.why);
    expect(outcome.pod.spec?.['nodeName']).toBe('kw-1');
    expect(outcome.pod.status?.['conditions']).toEqual([
      { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: '2001-02-03T04:05:11Z' },
    ]);
    expect(bindPod(outcome.pod, 'kw-2', nowMs)).toEqual({
      kind: 'refused',
      why: 'pod p-1 is already assigned to node "kw-1"',
    });
  });
});

describe('priority', () => {
  const urgent = { metadata: { name: 'urgent' }, value: 1000, preemptionPolicy: 'Never' } as const;

  it('is that of the class named, or of the default class, or 0', () => {
    const bare = (spec: Json): KubeObject => ({ metadata: {}, spec });
    expect(resolvePriority(bare({ priorityClassName: 'urgent' }), { named: urgent })).toEqual({
      kind: 'resolved',
      priority: { priority: 1000, priorityClassName: 'urgent', preemptionPolicy: 'Never' },
    });
    expect(resolvePriority(bare({}), { globalDefault: urgent })).toMatchObject({ priority: { priority: 1000 } });
    expect(resolvePriority(bare({}), {})).toEqual({
      kind: 'resolved',
      priority: { priority: 0, preemptionPolicy: 'PreemptLowerPriority' },
    });
  });

  it('is not for the pod to say', () => {
    expect(resolvePriority({ metadata: {}, spec: { priority: 5 } }, {})).toMatchObject({ kind: 'refused' });
    expect(resolvePriority({ metadata: {}, spec: { priorityClassName: 'absent' } }, {})).toEqual({
      kind: 'refused',
      field: 'priorityClassName',
      why: 'no PriorityClass with name absent was found',
    });
  });
});

describe('quality of service', () => {
  const r = (requests?: Json, limits?: Json): Json => ({
    resources: { ...(requests && { requests }), ...(limits && { limits }) },
  });
  const amounts = (cpu: string, memory: string, more: Json = {}): Json => ({ cpu, memory, ...more });
  const small = amounts('100m', '100Mi');

  it.each<[string, Json, string]>([
    ['QC01', { containers: [r(small, small)] }, 'Guaranteed'],
    ['QC03', { containers: [r()] }, 'BestEffort'],
    ['QC05', { containers: [r(), r({ cpu: '1' }, { cpu: '2' })] }, 'Burstable'],
    ['QC07', { containers: [r({ memory: '100Mi' }, { memory: '100Mi' })] }, 'Burstable'],
    ['QC09', { containers: [r(amounts('1', '100Mi'), amounts('2', '100Mi')), r(small, small)] }, 'Burstable'],
    ['QC11', { containers: [r(amounts('10m', '100Mi'), amounts('100m', '200Mi'))] }, 'Burstable'],
    [
      'QC13',
      {
        containers: [r(amounts('0', '0', { 'hugepages-2Mi': '1Gi' }), amounts('0', '0', { 'hugepages-2Mi': '1Gi' }))],
      },
      'BestEffort',
    ],
    ['QC15', { containers: [r()], ...r(amounts('10m', '100Mi'), amounts('10m', '100Mi')) }, 'Guaranteed'],
    ['QC17', { containers: [r()], ...r(amounts('10m', '10Mi'), amounts('20m', '50Mi')) }, 'Burstable'],
    ['QC19', { containers: [r(amounts('5m', '10Mi'))], ...r(amounts('10m', '10Mi')) }, 'Burstable'],
    ['QC21', { containers: [r(small, small)], initContainers: [r()] }, 'Burstable'],
    ['QC23', { containers: [r(undefined, small)] }, 'Burstable'],
  ])('%s', (_id, spec, qosClass) => {
    expect(qosClassOf(spec)).toBe(qosClass);
  });

  it('QC25 of a stored pod is the stored one', () => {
    const pod: KubePod = { metadata: {}, spec: { containers: [r(small, small)] }, status: { qosClass: 'Burstable' } };
    expect(podQosClass(pod)).toBe('Burstable');
    expect(podQosClass({ ...pod, status: {} })).toBe('Guaranteed');
  });
});

describe('the row of a pod', () => {
  const row = (status: Json, spec: Json = {}, meta: Json = {}): unknown[] => {
    const pod = create({ nodeName: 'kw-1', ...spec });
    return pods.row(
      { ...pod, metadata: { ...pod.metadata, creationTimestamp: '2001-02-03T04:05:06Z', ...meta }, status },
      nowMs,
    );
  };
  const container = (state: Json, more: Json = {}): Json => ({
    name: 'main',
    ready: false,
    restartCount: 0,
    lastState: {},
    state,
    ...more,
  });
  const running = { running: { startedAt: '2001-02-03T04:05:06Z' } };
  const deleted = { deletionTimestamp: '2001-02-03T04:05:10Z' };

  it('shows a pending pod', () => {
    expect(row({ phase: 'Pending' }, { nodeName: '' })).toEqual([
      'p-1',
      '0/1',
      'Pending',
      '0',
      '5s',
      '<none>',
      '<none>',
      '<none>',
      '<none>',
    ]);
  });

  it.each<[string, unknown[], Json, Json, Json]>([
    [
      'waiting',
      ['0/1', 'ImagePullBackOff', '3'],
      {
        phase: 'Running',
        containerStatuses: [container({ waiting: { reason: 'ImagePullBackOff' } }, { restartCount: 3 })],
      },
      {},
      {},
    ],
    [
      'killed',
      ['0/1', 'OOMKilled', '0'],
      { phase: 'Running', containerStatuses: [container({ terminated: { exitCode: 137, reason: 'OOMKilled' } })] },
      {},
      {},
    ],
    [
      'ended by a signal',
      ['0/1', 'Signal:9', '0'],
      { phase: 'Running', containerStatuses: [container({ terminated: { signal: 9 } })] },
      {},
      {},
    ],
    [
      'lost with its node',
      ['1/1', 'NodeLost', '0'],
      { phase: 'Running', reason: 'NodeLost', containerStatuses: [container(running, { ready: true })] },
      {},
      {},
    ],
    [
      'lost with its node and deleted',
      ['1/1', 'Unknown', '0'],
      { phase: 'Running', reason: 'NodeLost', containerStatuses: [container(running, { ready: true })] },
      {},
      deleted,
    ],
    [
      'terminating',
      ['0/1', 'Terminating', '3'],
      {
        phase: 'Running',
        containerStatuses: [container({ waiting: { reason: 'ImagePullBackOff' } }, { restartCount: 3 })],
      },
      {},
      deleted,
    ],
    [
      'initialising',
      ['0/1', 'Init:0/1', '0'],
      { phase: 'Pending', initContainerStatuses: [container(running, { name: 'init' })] },
      { initContainers: [{ name: 'init', image: 'x' }] },
      {},
    ],
    [
      'failing to initialise',
      ['0/1', 'Init:ExitCode:2', '4'],
      {
        phase: 'Pending',
        initContainerStatuses: [container({ terminated: { exitCode: 2 } }, { name: 'init', restartCount: 4 })],
      },
      { initContainers: [{ name: 'init', image: 'x' }] },
      {},
    ],
    [
      'running with a sidecar',
      ['2/2', 'Running', '1'],
      {
        phase: 'Running',
        initContainerStatuses: [container(running, { name: 'side', ready: true, started: true, restartCount: 1 })],
        containerStatuses: [container(running, { ready: true })],
      },
      { initContainers: [{ name: 'side', image: 'x', restartPolicy: 'Always' }] },
      {},
    ],
    [
      'restarted a moment ago',
      ['1/1', 'Running', '2 (3s ago)'],
      {
        phase: 'Running',
        containerStatuses: [
          container(running, {
            ready: true,
            restartCount: 2,
            lastState: { terminated: { finishedAt: '2001-02-03T04:05:08Z' } },
          }),
        ],
      },
      {},
      {},
    ],
    ['evicted', ['0/1', 'Evicted', '0'], { phase: 'Failed', reason: 'Evicted' }, {}, {}],
  ])('shows a pod that is %s', (_what, cells, status, spec, meta) => {
    expect(row(status, spec, meta).slice(1, 4)).toEqual(cells);
  });

  it('counts readiness gates', () => {
    const spec = { readinessGates: [{ conditionType: 'example.org/ready' }] };
    expect(row({ phase: 'Pending' }, spec)[8]).toBe('0/1');
    expect(row({ conditions: [{ type: 'example.org/ready', status: 'True' }] }, spec)[8]).toBe('1/1');
  });
});

describe('a container that has terminated', () => {
  const restartPolicyRules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }];
  const other = { ...main, name: 'other', restartPolicy: 'Never', restartPolicyRules };

  it.each([
    [
      'stays so',
      [main],
      ['status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state'],
    ],
    ['may run again for a rule of another one that restarts all', [main, other], []],
  ])('%s', (_, containers, expected) => {
    const pod = create({ restartPolicy: 'Never', containers });
    const withState = (state: object): KubeObject => ({
      ...pod,
      status: { ...pod.status, containerStatuses: [{ name: 'main', image: 'i', imageID: '', state }] },
    });
    const ended = withState({ terminated: { exitCode: 1 } });
    expect(complaints(withState({ waiting: {} }), ended, 'status')).toEqual(expected);
  });
});
