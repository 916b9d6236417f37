import { describe, expect, it } from 'vitest';
import type { KubeEndpointSlice, KubeEndpoints, KubePod, KubeService } from '../../../shared/kinds/types.ts';
import { endpointsFor, filledEndpoints, freeName, isFilled, labelsOfEndpoints, selectsPod, slicesFor } from './rule.ts';

const service = (spec: object = {}, metadata: object = {}): KubeService =>
  ({
    metadata: { name: 'web', namespace: 'shop', uid: 'su', ...metadata },
    spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...spec },
  }) as KubeService;

interface PodParts {
  readonly ip?: string;
  readonly ips?: readonly string[];
  readonly ready?: boolean;
  readonly metadata?: object;
  readonly spec?: object;
  readonly phase?: string;
}
const pod = (
  name: string,
  { ip = '10.0.0.1', ips, ready = true, metadata, spec, phase = 'Running' }: PodParts = {},
): KubePod =>
  ({
    metadata: { name, namespace: 'shop', uid: `u-${name}`, labels: { app: 'web' }, ...metadata },
    spec: { nodeName: 'n', containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 8081 }] }], ...spec },
    status: {
      phase,
      podIP: ip,
      ...(ips === undefined ? {} : { podIPs: ips.map((each) => ({ ip: each })) }),
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
    },
  }) as unknown as KubePod;
const TERMINATING = { metadata: { deletionTimestamp: 't' } };

describe('a Service', () => {
  it('has its endpoints written here if it selects pods, and is neither deleted nor external', () => {
    expect(isFilled(service())).toBe(true);
    expect(isFilled(service({ selector: {} }))).toBe(false);
    expect(isFilled(service({ selector: undefined }))).toBe(false);
    expect(isFilled(service({ type: 'ExternalName' }))).toBe(false);
    expect(isFilled(service({}, { deletionTimestamp: 't' }))).toBe(false);
  });

  it('selects the pods with all its labels', () => {
    const both = service({ selector: { app: 'web', tier: 'a' } });
    expect(selectsPod(both, { app: 'web', tier: 'a', more: 'x' })).toBe(true);
    expect(selectsPod(both, { app: 'web' })).toBe(false);
  });
});

describe('Endpoints', () => {
  const subsets = (pods: readonly KubePod[], spec: object = {}) => endpointsFor(service(spec), pods).subsets ?? [];
  const ips = (pods: readonly KubePod[], spec: object = {}) =>
    subsets(pods, spec).map(({ addresses = [], notReadyAddresses = [] }) => [
      addresses.map(({ ip }) => ip),
      notReadyAddresses.map(({ ip }) => ip),
    ]);

  it('have the address of each selected pod, by its readiness and in the order of names', () => {
    const pods = [pod('b', { ip: '10.0.0.2' }), pod('a'), pod('c', { ip: '10.0.0.3', ready: false })];
    expect(subsets(pods)).toEqual([
      {
        addresses: [
          { ip: '10.0.0.1', nodeName: 'n', targetRef: { kind: 'Pod', namespace: 'shop', name: 'a', uid: 'u-a' } },
          expect.objectContaining({ ip: '10.0.0.2' }),
        ],
        notReadyAddresses: [expect.objectContaining({ ip: '10.0.0.3' })],
        ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      },
    ]);
  });

  it('leave out pods that are not selected, ended, terminating, or without an address', () => {
    expect(ips([pod('a', { metadata: { labels: {} } })])).toEqual([]);
    expect(ips([pod('a', { phase: 'Succeeded' })])).toEqual([]);
    expect(ips([pod('a', TERMINATING)])).toEqual([]);
    expect(ips([pod('a', { ip: '' })])).toEqual([]);
    expect(endpointsFor(service(), [])).toEqual({ labels: {}, isTruncated: false });
  });

  it('have all addresses as ready where the Service publishes them before', () => {
    const pods = [pod('a', { ready: false }), pod('b', { ip: '10.0.0.2', ...TERMINATING })];
    expect(ips(pods, { publishNotReadyAddresses: true })).toEqual([[['10.0.0.1', '10.0.0.2'], []]]);
  });

  it('have addresses of the first family of the Service', () => {
    const dual = pod('a', { ips: ['10.0.0.1', 'fd00::1'] });
    expect(ips([dual])).toEqual([[['10.0.0.1'], []]]);
    expect(ips([dual], { ipFamilies: ['IPv6', 'IPv4'] })).toEqual([[['fd00::1'], []]]);
    expect(ips([pod('a')], { ipFamilies: ['IPv6'] })).toEqual([]);
  });

  it('have the ports of the containers by their names', () => {
    const named = (targetPort: unknown, more: object = {}) =>
      subsets([pod('a')], { ports: [{ port: 80, targetPort, ...more }] }).map(({ ports }) => ports);
    expect(named('http')).toEqual([[{ port: 8081, protocol: 'TCP' }]]);
    expect(named('http', { protocol: 'UDP' })).toEqual([]);
    expect(named('other')).toEqual([]);
    expect(named(undefined)).toEqual([[{ port: 80, protocol: 'TCP' }]]);
    expect(named(0)).toEqual([[{ port: 80, protocol: 'TCP' }]]);
    expect(named(81, { name: 'x', protocol: 'UDP', appProtocol: 'h2' })).toEqual([
      [{ name: 'x', appProtocol: 'h2', port: 81, protocol: 'UDP' }],
    ]);
  });

  it('have a subset for each set of ports, and one without ports for a Service without', () => {
    const other = pod('b', {
      ip: '10.0.0.2',
      spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 9 }] }] },
    });
    const found = subsets([pod('a'), other, pod('c', { ip: '10.0.0.3' })], {
      ports: [{ port: 80, targetPort: 'http' }],
    });
    expect(found.map(({ ports, addresses }) => [ports?.[0]?.port, addresses?.map(({ ip }) => ip)])).toEqual([
      [8081, ['10.0.0.1', '10.0.0.3']],
      [9, ['10.0.0.2']],
    ]);
    expect(subsets([pod('a')], { ports: [] })).toEqual([{ addresses: [expect.objectContaining({ ip: '10.0.0.1' })] }]);
  });

  it('have the host name of pods with the Service as subdomain', () => {
    const hostname = (spec: object) => subsets([pod('a', { spec })])[0]?.addresses?.[0]?.hostname;
    expect(hostname({ hostname: 'h', subdomain: 'web' })).toBe('h');
    expect(hostname({ hostname: 'h', subdomain: 'other' })).toBeUndefined();
    expect(hostname({ hostname: '', subdomain: 'web' })).toBeUndefined();
    expect(subsets([pod('a', { spec: { nodeName: '' } })])[0]?.addresses?.[0]).not.toHaveProperty('nodeName');
  });

  it('are at most 250, ready ones before others', () => {
    const many = (count: number, ready: boolean, third: number) =>
      Array.from({ length: count }, (_, index) =>
        pod(`${ready ? 'y' : 'a'}${String(index).padStart(3, '0')}`, { ip: `10.0.${third}.${index}`, ready }),
      );
    const full = endpointsFor(service(), many(250, true, 1));
    expect([full.isTruncated, full.subsets?.[0]?.addresses?.length]).toEqual([false, 250]);
    const over = endpointsFor(service(), [...many(10, false, 2), ...many(249, true, 1)]);
    expect(over.isTruncated).toBe(true);
    expect(
      over.subsets?.map(({ addresses, notReadyAddresses }) => [addresses?.length, notReadyAddresses?.length]),
    ).toEqual([[249, 1]]);
  });

  it('have the labels of the Service, and one more if it is headless', () => {
    const labelled = { labels: { team: 'x' } };
    expect(endpointsFor(service({}, labelled), []).labels).toEqual({ team: 'x' });
    expect(endpointsFor(service({ clusterIP: 'None' }, labelled), []).labels).toEqual({
      team: 'x',
      'service.kubernetes.io/headless': '',
    });
  });
});

describe('stored Endpoints', () => {
  const OVER = 'endpoints.kubernetes.io/over-capacity';
  const stored = (metadata: object = {}, more: object = {}) =>
    ({ metadata: { name: 'web', ...metadata }, ...more }) as KubeEndpoints;
  const wanted = (more: Partial<ReturnType<typeof endpointsFor>> = {}) => ({ labels: {}, isTruncated: false, ...more });

  it('are the same object while their content stays', () => {
    const subsets = [{ addresses: [{ ip: '10.0.0.1' }] }];
    const same = stored({ labels: { a: 'b' }, annotations: { note: 'x' } }, { subsets });
    expect(filledEndpoints(same, wanted({ labels: { a: 'b' }, subsets }))).toBe(same);
  });

  it('get the labels and subsets of the Service, and keep their annotations', () => {
    const before = stored({ labels: { old: 'x' }, annotations: { note: 'x' } }, { subsets: [{}] });
    expect(filledEndpoints(before, wanted({ labels: { a: 'b' } }))).toEqual(
      stored({ labels: { a: 'b' }, annotations: { note: 'x' } }),
    );
    expect(filledEndpoints(before, wanted())).toEqual(stored({ annotations: { note: 'x' } }));
  });

  it('say when they are truncated, and no longer', () => {
    const over = filledEndpoints(stored(), wanted({ isTruncated: true }));
    expect(over).toEqual(stored({ annotations: { [OVER]: 'truncated' } }));
    expect(filledEndpoints(over, wanted())).toEqual(stored());
  });
});

describe('EndpointSlices', () => {
  const addresses = (slices: readonly KubeEndpointSlice[]) =>
    slices.map(({ endpoints = [] }) => endpoints.map((each) => each.addresses?.[0]));
  const pods = (count: number, from = 0) =>
    Array.from({ length: count }, (_, index) =>
      pod(`p${String(from + index).padStart(4, '0')}`, { ip: `10.1.${(from + index) >> 8}.${(from + index) & 255}` }),
    );

  it('are created with their Service as owner', () => {
    const { create, update, remove } = slicesFor(service({}, { labels: { team: 'x' } }), [pod('a')], []);
    expect([update, remove]).toEqual([[], []]);
    expect(create).toEqual([
      {
        metadata: {
          name: expect.stringMatching(/^web-[a-z0-9]{5}$/),
          generateName: 'web-',
          namespace: 'shop',
          labels: {
            team: 'x',
            'kubernetes.io/service-name': 'web',
            'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
          },
          ownerReferences: [
            { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'su', controller: true, blockOwnerDeletion: true },
          ],
        },
        addressType: 'IPv4',
        endpoints: [
          {
            addresses: ['10.0.0.1'],
            conditions: { ready: true, serving: true, terminating: false },
            nodeName: 'n',
            targetRef: { kind: 'Pod', namespace: 'shop', name: 'a', uid: 'u-a' },
          },
        ],
        ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      },
    ]);
  });

  it.each([
    [{}, {}, { ready: true, serving: true, terminating: false }],
    [{}, { ready: false }, { ready: false, serving: false, terminating: false }],
    [{}, TERMINATING, { ready: false, serving: true, terminating: true }],
    [{ publishNotReadyAddresses: true }, TERMINATING, { ready: true, serving: true, terminating: true }],
    [{ publishNotReadyAddresses: true }, { ready: false }, { ready: true, serving: false, terminating: false }],
  ])('of %j have for a pod %j the conditions %j', (spec, parts, conditions) => {
    expect(slicesFor(service(spec), [pod('a', parts)], []).create[0]?.endpoints?.[0]?.conditions).toEqual(conditions);
  });

  const zones = new Map([['n', 'north']]);
  it.each([
    ['PreferClose', zones, { forZones: [{ name: 'north' }] }],
    ['PreferSameZone', zones, { forZones: [{ name: 'north' }] }],
    ['PreferSameNode', zones, { forZones: [{ name: 'north' }], forNodes: [{ name: 'n' }] }],
    ['PreferSameNode', new Map(), { forNodes: [{ name: 'n' }] }],
    ['PreferSameZone', new Map(), undefined],
    [undefined, zones, undefined],
  ])('have the hints of trafficDistribution %s', (trafficDistribution, of, hints) => {
    const made = (parts: PodParts) => slicesFor(service({ trafficDistribution }), [pod('a', parts)], [], of).create;
    expect(made({})[0]?.endpoints?.[0]?.hints).toEqual(hints);
    expect(made({ ready: false })[0]?.endpoints?.[0]?.hints).toBeUndefined();
  });

  it('lose their hints with trafficDistribution', () => {
    const stored = slicesFor(service({ trafficDistribution: 'PreferClose' }), [pod('a')], [], zones).create;
    const [change] = slicesFor(service(), [pod('a')], stored, zones).update;
    expect(change?.object.endpoints?.[0]).not.toHaveProperty('hints');
  });

  it('are one empty slice without pods, which stays', () => {
    const { create } = slicesFor(service(), [], []);
    expect([create.length, addresses(create), create[0]?.ports]).toEqual([1, [[]], []]);
    expect(slicesFor(service(), [], create)).toEqual({ create: [], update: [], remove: [] });
    const unnamed = slicesFor(service({ ports: [{ port: 80, targetPort: 'other' }] }), [pod('a')], []);
    expect(addresses(unnamed.create)).toEqual([[]]);
  });

  it('have at most 100 endpoints each, with names of their own', () => {
    const { create } = slicesFor(service(), pods(201), []);
    expect(create.map(({ endpoints }) => endpoints?.length)).toEqual([100, 100, 1]);
    expect(new Set(create.map(({ metadata }) => metadata.name)).size).toBe(3);
  });

  it('are not written without a change', () => {
    const { create } = slicesFor(service(), pods(150), []);
    expect(slicesFor(service(), pods(150), create)).toEqual({ create: [], update: [], remove: [] });
  });

  it('keep an endpoint in the slice that has it, and fill free places first', () => {
    const { create: stored } = slicesFor(service(), pods(150), []);
    const [first, second] = stored.toSorted((one, other) =>
      (one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1,
    );
    const lost = first!.endpoints![0]!.addresses![0]!;
    const remaining = pods(150).filter(({ status }) => status?.podIP !== lost);
    const plan = slicesFor(service(), [...remaining, ...pods(2, 500)], stored);
    expect([plan.create, plan.remove]).toEqual([[], []]);
    const after = new Map(plan.update.map(({ previous, object }) => [previous, object]));
    const lengthOf = (slice: KubeEndpointSlice) => (after.get(slice) ?? slice).endpoints?.length;
    expect((lengthOf(first!) ?? 0) + (lengthOf(second!) ?? 0)).toBe(151);
    for (const slice of stored) {
      const before = new Set((slice.endpoints ?? []).map((each) => each.addresses?.[0]));
      const kept = ((after.get(slice) ?? slice).endpoints ?? []).filter((each) => before.has(each.addresses?.[0]));
      expect(before.size - kept.length).toBe(slice === first ? 1 : 0);
    }
  });

  it('behind the last one that is used are deleted', () => {
    const { create: stored } = slicesFor(service(), pods(201), []);
    const plan = slicesFor(service(), [], stored);
    expect(plan.create.length + plan.update.length + plan.remove.length).toBe(4);
    const [one] = slicesFor(service(), pods(1), []).create;
    const two = { ...one!, metadata: { ...one!.metadata, name: 'web-zzzzz' }, endpoints: [] };
    expect(slicesFor(service(), pods(1), [one!, two])).toEqual({ create: [], update: [], remove: [two] });
  });

  it('have pods with other ports in another slice', () => {
    const other = pod('b', {
      ip: '10.0.0.2',
      spec: { containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 9 }] }] },
    });
    const { create } = slicesFor(service({ ports: [{ port: 80, targetPort: 'http' }] }), [pod('a'), other], []);
    expect(create.map(({ ports, endpoints }) => [ports, endpoints?.length])).toEqual([
      [[{ name: '', port: 8081, protocol: 'TCP' }], 1],
      [[{ name: '', port: 9, protocol: 'TCP' }], 1],
    ]);
    const again = slicesFor(service({ ports: [{ port: 80, targetPort: 'http' }] }), [pod('a'), other], create);
    expect(again).toEqual({ create: [], update: [], remove: [] });
  });

  it('have ports that are made once for equal pods, however many ports and pods there are', () => {
    let reads = 0;
    const port = {
      port: 80,
      get targetPort() {
        reads += 1;
        return 'http';
      },
    };
    const pods = Array.from({ length: 50 }, (_, index) => pod(`p${index}`));
    const [slice] = slicesFor(service({ ports: [port] }), pods, []).create;
    expect([slice?.endpoints?.length, slice?.ports]).toEqual([50, [{ name: '', port: 8081, protocol: 'TCP' }]]);
    expect(reads).toBeLessThan(10);
  });

  it('are those of each family of the Service, and others are deleted', () => {
    const dual = [pod('a', { ips: ['10.0.0.1', 'fd00::1'] })];
    const both = slicesFor(service({ ipFamilies: ['IPv4', 'IPv6'] }), dual, []).create;
    expect(both.map(({ addressType, endpoints }) => [addressType, endpoints?.[0]?.addresses])).toEqual([
      ['IPv4', ['10.0.0.1']],
      ['IPv6', ['fd00::1']],
    ]);
    expect(new Set(both.map(({ metadata }) => metadata.name)).size).toBe(2);
    expect(slicesFor(service({ ipFamilies: ['IPv6'] }), dual, both)).toEqual({
      create: [],
      update: [],
      remove: [both[0]],
    });
  });

  it('follow the labels of their Service', () => {
    const { create } = slicesFor(service(), [pod('a')], []);
    const { update } = slicesFor(service({}, { labels: { team: 'x' } }), [pod('a')], create);
    expect(update).toMatchObject([{ previous: create[0], object: { metadata: { labels: { team: 'x' } } } }]);
  });
});

it('names of slices are free, and the same for the same Service', () => {
  const names = new Set<string>();
  const first = freeName(service(), 'IPv4', names);
  const second = freeName(service(), 'IPv4', names);
  expect([first === second, names.size]).toEqual([false, 2]);
  expect(freeName(service(), 'IPv4', new Set())).toBe(first);
  expect(freeName(service(), 'IPv6', new Set())).not.toBe(first);
  expect(freeName(service({}, { uid: 'v' }), 'IPv4', new Set())).not.toBe(first);
});

describe('a change of a pod', () => {
  const concerned = (before: KubePod | undefined, after: KubePod | undefined) =>
    labelsOfEndpoints(before, after).length;
  it.each<[string, PodParts]>([
    ['its labels', { metadata: { labels: { app: 'x' } } }],
    ['its deletion', TERMINATING],
    ['its address', { ip: '10.0.0.2' }],
    ['its other addresses', { ips: ['10.0.0.1', 'fd00::1'] }],
    ['its end', { phase: 'Failed' }],
    ['its readiness', { ready: false }],
    ['its node', { spec: { nodeName: 'm' } }],
    ['its host name', { spec: { hostname: 'h' } }],
    ['its subdomain', { spec: { subdomain: 'h' } }],
  ])('concerns endpoints if it is %s', (_text, parts) => {
    expect(concerned(pod('a'), pod('a', parts))).toBe(2);
  });

  it('concerns none without news, or without an address', () => {
    expect(concerned(pod('a'), pod('a', { spec: { priority: 1 } }))).toBe(0);
    expect(concerned(pod('a'), undefined)).toBe(1);
    expect(concerned(undefined, pod('a'))).toBe(1);
    expect(concerned(pod('a', { ip: '' }), pod('a', { ip: '', ready: false }))).toBe(0);
    expect(labelsOfEndpoints(undefined, pod('a', { metadata: { labels: undefined } }))).toEqual([{}]);
  });
});
