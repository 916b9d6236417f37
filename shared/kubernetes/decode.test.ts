import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../kinds/schemas.ts';
import { upstream } from '../kinds/upstream.ts';
import { decodeStrict, fieldWarnings, typeFaultMessage } from './decode.ts';
import type { JsonObject } from './json.ts';

const coreEvent = upstream.struct('core/v1.Event');
const lease = upstream.struct('coordination/v1.Lease');
const node = upstream.struct('core/v1.Node');
const pod = upstream.struct('core/v1.Pod');
const podDisruptionBudget = upstream.struct('policy/v1.PodDisruptionBudget');
const volumeAttachment = upstream.struct('storage/v1.VolumeAttachment');

describe('decodeStrict', () => {
  it('names fields it does not know by their path', () => {
    const { unknownFields } = decodeStrict(node, {
      kind: 'Node',
      extra: 1,
      metadata: { name: 'n', labels: { any: 'thing' }, nmae: 'x' },
      spec: { taints: [{ key: 'a', effect: 'NoSchedule', colour: 'red' }], x: {} },
    });
    expect(unknownFields).toEqual(['extra', 'metadata.nmae', 'spec.x', 'spec.taints[0].colour']);
    expect(fieldWarnings(['a'], ['duplicate field "b"'])).toEqual(['duplicate field "b"', 'unknown field "a"']);
  });

  it.each([
    [node, { spec: { unschedulable: 'yes' } }, 'string into Go struct field NodeSpec.spec.unschedulable of type bool'],
    [node, { metadata: { labels: { a: 1 } } }, 'number into Go struct field ObjectMeta.metadata.labels of type string'],
    [
      node,
      { metadata: { labels: [] } },
      'array into Go struct field ObjectMeta.metadata.labels of type map[string]string',
    ],
    [node, { spec: { taints: {} } }, 'object into Go struct field NodeSpec.spec.taints of type []v1.Taint'],
    [node, { spec: { taints: [{ key: true }] } }, 'bool into Go struct field Taint.spec.taints.key of type string'],
    [
      node,
      { spec: { taints: [{ effect: 1 }] } },
      'number into Go struct field Taint.spec.taints.effect of type v1.TaintEffect',
    ],
    [node, { spec: 'x' }, 'string into Go struct field Node.spec of type v1.NodeSpec'],
    [node, [], 'array into Go value of type v1.Node'],
    [
      lease,
      { spec: { leaseDurationSeconds: 1.5 } },
      'number 1.5 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32',
    ],
    [
      lease,
      { spec: { leaseTransitions: 2 ** 31 } },
      'number 2147483648 into Go struct field LeaseSpec.spec.leaseTransitions of type int32',
    ],
    [
      pod,
      { spec: { terminationGracePeriodSeconds: 1e300 } },
      'number 1e+300 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64',
    ],
    [
      pod,
      { spec: { activeDeadlineSeconds: Number.POSITIVE_INFINITY } },
      'number Infinity into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64',
    ],
  ])('says of a wrong type what Go would say (%#)', (schema, value, message) => {
    expect(decodeStrict(schema, value).typeFaults[0]?.message).toBe(`json: cannot unmarshal ${message}`);
  });

  it('words the 400 for a wrong type', () => {
    const { typeFaults } = decodeStrict(node, { spec: { unschedulable: 'yes' } });
    expect(typeFaultMessage('Node', 'v1', typeFaults)).toBe(
      'Node in version "v1" cannot be handled as a Node: json: cannot unmarshal string into Go struct field NodeSpec.spec.unschedulable of type bool',
    );
    expect(typeFaultMessage('Node', 'v1', [])).toBeUndefined();
  });

  it('prints a bare node as an API server does', () => {
    const { value } = decodeStrict(node, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'kw-1' } });
    expect(value).toEqual({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'kw-1' },
      spec: {},
      status: {
        daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
        nodeInfo: {
          architecture: '',
          bootID: '',
          containerRuntimeVersion: '',
          kernelVersion: '',
          kubeProxyVersion: '',
          kubeletVersion: '',
          machineID: '',
          operatingSystem: '',
          osImage: '',
          systemUUID: '',
        },
      },
    });
  });

  it('drops empty fields: bodies with the same meaning become equal', () => {
    const empty = {
      metadata: { labels: {}, annotations: null, finalizers: [] },
      spec: { unschedulable: false, taints: [] },
    };
    expect(decodeStrict(node, empty).value).toEqual(decodeStrict(node, {}).value);
    expect(decodeStrict(node, { metadata: { labels: { a: '' } } }).value['metadata']).toEqual({ labels: { a: '' } });
  });

  it('prints a pod as an API server does, before defaults', () => {
    const spec = { containers: [{ name: 'main', env: [{ name: 'A', value: '' }] }], hostNetwork: false };
    const { value, unknownFields, typeFaults } = decodeStrict(pod, { metadata: { name: 'p' }, spec });
    expect({ unknownFields, typeFaults }).toEqual({ unknownFields: [], typeFaults: [] });
    expect(value).toEqual({
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'main', env: [{ name: 'A' }], resources: {} }] },
      status: {},
    });
  });

  it('knows a pod in full', () => {
    const spec = {
      containers: [
        {
          name: 'main',
          image: 'app:1',
          ports: [{ containerPort: 80, protocol: 'TCP' }],
          env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
          envFrom: [{ configMapRef: { name: 'c' } }],
          resources: { requests: { cpu: '100m' }, limits: { memory: 64 } },
          volumeMounts: [{ name: 'v', mountPath: '/v' }],
          livenessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 5 },
          lifecycle: { preStop: { sleep: { seconds: 5 } } },
          securityContext: { runAsNonRoot: true, capabilities: { drop: ['ALL'] } },
        },
      ],
      tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }],
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { topologyKey: 'zone', labelSelector: { matchLabels: { a: 'b' } } } },
          ],
        },
      },
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      volumes: [
        { name: 'v', emptyDir: {} },
        { name: 's', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
        { name: 'e', ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], resources: {} } } } },
      ],
    };
    const { unknownFields, typeFaults, value } = decodeStrict(pod, { spec });
    expect({ unknownFields, typeFaults }).toEqual({ unknownFields: [], typeFaults: [] });
    expect(value['spec']).toMatchObject({ ...spec, containers: [{ resources: { limits: { memory: '64' } } }] });
    expect(
      decodeStrict(pod, { spec: { containers: [{ name: 'a', env: [{ name: 'N', value: 1 }] }] } }).typeFaults,
    ).toEqual([
      {
        path: 'spec.containers[0].env[0].value',
        message: 'json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string',
      },
    ]);
  });

  it('keeps a budget of none apart from no budget', () => {
    const budget = (spec: JsonObject) => decodeStrict(podDisruptionBudget, { spec }).value['spec'];
    expect(budget({ maxUnavailable: 0, selector: {} })).toEqual({ maxUnavailable: 0, selector: {} });
    expect(budget({ minAvailable: '50%' })).toEqual({ minAvailable: '50%' });
  });

  it('prints whether a volume is attached even if it was never set', () => {
    const spec = { attacher: 'ebs.csi.aws.com', nodeName: 'kw-1', source: { persistentVolumeName: 'pv-1' } };
    expect(decodeStrict(volumeAttachment, { spec }).value).toEqual({ metadata: {}, spec, status: { attached: false } });
  });

  it('keeps an empty value where it differs from none', () => {
    const spec = { leaseTransitions: 0, holderIdentity: '' };
    expect(decodeStrict(lease, { spec }).value['spec']).toEqual(spec);
  });

  it('prints the fields of an event that are always there', () => {
    expect(decodeStrict(coreEvent, { metadata: { name: 'e' } }).value).toEqual({
      metadata: { name: 'e' },
      involvedObject: {},
      source: {},
      firstTimestamp: null,
      lastTimestamp: null,
      eventTime: null,
      reportingComponent: '',
      reportingInstance: '',
    });
  });

  it.each([
    ['2026-11-20T12:00:00Z', '2026-11-20T12:00:00Z', '2026-11-20T12:00:00.000000Z'],
    ['2026-11-20T12:00:00.000Z', '2026-11-20T12:00:00Z', '2026-11-20T12:00:00.000000Z'],
    ['2026-11-20T12:00:00.123456789+02:00', '2026-11-20T10:00:00Z', '2026-11-20T10:00:00.123456Z'],
    ['2024-02-29T23:59:59Z', '2024-02-29T23:59:59Z', '2024-02-29T23:59:59.000000Z'],
  ])('keeps the time %s in UTC, with the digits of its type', (given, seconds, micros) => {
    const { value } = decodeStrict(coreEvent, { firstTimestamp: given, eventTime: given });
    expect(value).toMatchObject({ firstTimestamp: seconds, eventTime: micros });
  });

  it.each(['yesterday', '2026-02-30T00:00:00Z', '2026-11-20T12:00:00', '2026-11-20', ''])(
    'refuses the time "%s"',
    (given) => {
      const { typeFaults } = decodeStrict(coreEvent, { firstTimestamp: given });
      expect(typeFaults).toEqual([
        { path: 'firstTimestamp', message: expect.stringMatching(/^parsing time ".*" as "2006/) },
      ]);
    },
  );

  it('accepts quantities as text or number, and refuses other values', () => {
    const capacity = (value: unknown) => decodeStrict(node, { status: { capacity: { cpu: value } } });
    for (const good of ['4', '500m', '1.5', '8Gi', '1e3', '-1', '.5', '12E']) {
      expect(capacity(good).typeFaults).toEqual([]);
    }
    expect(capacity(4).value['status']).toMatchObject({ capacity: { cpu: '4' } });
    for (const bad of ['', 'four', '1 Gi', '1GiB', '--1', '1.2.3']) {
      expect(capacity(bad).typeFaults[0]?.message).toMatch(/^quantities must match the regular expression/);
    }
  });

  it('changes nothing when it reads what it wrote', () => {
    const key = fc.constantFrom(
      'metadata',
      'name',
      'labels',
      'spec',
      'taints',
      'key',
      'effect',
      'status',
      'conditions',
      '__proto__',
    );
    const { value: random } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'large' },
        fc.constantFrom<unknown>(null, 'x', '', 0, 1, true, '2026-11-20T12:00:00Z'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(random, (given) => {
        const first = decodeStrict(node, JSON.parse(JSON.stringify(given)));
        const second = decodeStrict(node, first.value);
        expect(second).toEqual({ value: first.value, unknownFields: [], typeFaults: [] });
      }),
      { numRuns: 300 },
    );
  });

  it('does not treat inherited names as fields', () => {
    const value = JSON.parse('{"constructor":1,"__proto__":{"spec":{}},"toString":2}') as JsonObject;
    expect(decodeStrict(node, value).unknownFields).toEqual(['constructor', '__proto__', 'toString']);
  });
});

describe('schemaOf', () => {
  it('finds every kind by apiVersion and kind', () => {
    expect(schemaOf('v1', 'Node')).toBe(node);
    expect(schemaOf('coordination.k8s.io/v1', 'Lease')).toBe(lease);
    expect(schemaOf('v1', 'Lease')).toBeUndefined();
  });
});
