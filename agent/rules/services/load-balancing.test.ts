import { describe, expect, it } from 'vitest';
import type {
  Endpoint,
  EndpointHints,
  KubeEndpointSlice,
  KubeService,
  ServiceSpec,
} from '../../../shared/kinds/types.ts';
import { type BalancedPort, balancedPorts, type Place } from './load-balancing.ts';

const PLACE: Place = { nodeName: 'edge-1', podNetworks: [] };

const service = (spec: Partial<ServiceSpec> = {}, name = 'web'): KubeService => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name },
  spec: { clusterIP: '10.96.0.10', ports: [{ port: 80 }], ...spec },
});

const slice = (endpoints: Endpoint[], more: Partial<KubeEndpointSlice> = {}, name = 'web'): KubeEndpointSlice => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { namespace: 'shop', name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
  addressType: 'IPv4',
  endpoints,
  ports: [{ port: 8080 }],
  ...more,
});

const endpoint = (address: string, more: Partial<Endpoint> = {}): Endpoint => ({
  addresses: [address],
  nodeName: 'edge-2',
  ...more,
});
const leaving = { conditions: { ready: false, serving: true, terminating: true } };

const only = (services: KubeService[], slices: KubeEndpointSlice[], place: Partial<Place> = {}): BalancedPort => {
  const ports = balancedPorts(services, slices, { ...PLACE, ...place });
  expect(ports).toHaveLength(1);
  return ports[0] as BalancedPort;
};
const addresses = (targets: BalancedPort['cluster']) => targets.map(({ address }) => address);

describe('the endpoints of a Service', () => {
  it('are the ready ones, and those without a condition count as ready', () => {
    const slices = [slice([endpoint('10.0.0.1'), endpoint('10.0.0.2', { conditions: { ready: false } })])];
    expect(only([service()], slices)).toMatchObject({
      id: 'shop/web/tcp/80',
      at: { address: '10.96.0.10', port: 80 },
      cluster: [{ address: '10.0.0.1', port: 8080 }],
      local: [],
    });
  });

  it('are those that serve while they terminate, if none is ready, for each policy alone', () => {
    const own = endpoint('10.0.0.1', { ...leaving, nodeName: 'edge-1' });
    const dead = endpoint('10.0.0.3', { conditions: { ready: false, serving: false, terminating: true } });
    const alone = only([service()], [slice([own, dead])]);
    expect(addresses(alone.cluster)).toEqual(['10.0.0.1']);
    const withReady = only([service()], [slice([own, dead, endpoint('10.0.0.2')])]);
    expect(addresses(withReady.cluster)).toEqual(['10.0.0.2']);
    expect(addresses(withReady.local)).toEqual(['10.0.0.1']);
  });

  it('are none at the address of the Service itself', () => {
    const slices = [
      slice([endpoint('10.96.0.10'), endpoint('10.0.0.2')]),
      slice([endpoint('10.96.0.10')], {}, 'other'),
    ];
    expect(addresses(only([service()], slices).cluster)).toEqual(['10.0.0.2']);
    const elsewhere = only([service({ clusterIP: '10.96.0.11' }, 'other')], slices);
    expect(addresses(elsewhere.cluster)).toEqual(['10.96.0.10']);
  });

  it('are those of the own zone, and those without one', () => {
    const slices = [
      slice([
        endpoint('10.0.0.1', { zone: 'north' }),
        endpoint('10.0.0.2', { zone: 'south' }),
        endpoint('10.0.0.3', { nodeName: 'edge-1', zone: 'south' }),
        { addresses: ['192.0.2.7'] },
      ]),
    ];
    expect(addresses(only([service()], slices, { zone: 'north' }).cluster)).toEqual([
      '10.0.0.1',
      '10.0.0.3',
      '192.0.2.7',
    ]);
    expect(addresses(only([service()], slices).cluster)).toHaveLength(4);
    expect(addresses(only([service()], slices, { zone: 'north', reachesAllZones: true }).cluster)).toHaveLength(4);
  });

  const forZone = (...names: string[]): EndpointHints => ({ forZones: names.map((name) => ({ name })) });
  const forNode = (node: string, zone: string): EndpointHints => ({ ...forZone(zone), forNodes: [{ name: node }] });
  it.each<[string, Partial<Place>, hints: (EndpointHints | undefined)[], expected: string[]]>([
    ['of the zone', { zone: 'north' }, [forZone('north'), forZone('south'), forZone('north')], ['1', '3']],
    ['of one of the zones', { zone: 'north' }, [forZone('south', 'north'), forZone('south')], ['1']],
    ['of the Node', { zone: 'north' }, [forNode('edge-1', 'north'), forNode('edge-2', 'north')], ['1']],
    ['of the zone without one of the Node', { zone: 'north' }, [forNode('n', 'north'), forNode('m', 'south')], ['1']],
    ['of the zone if one has no hint for Nodes', { zone: 'a' }, [forNode('edge-1', 'a'), forZone('a')], ['1', '2']],
    ['all, if none is for the zone', { zone: 'north' }, [forZone('south'), forZone('south')], ['1', '2']],
    ['all, if one has no hint', { zone: 'north' }, [forZone('north'), undefined], ['1', '2']],
    ['all, if the Node has no zone', {}, [forZone('north'), forZone('south')], ['1', '2']],
  ])('are those that hints prefer: %s', (_, place, hints, expected) => {
    const endpoints = hints.map((each, index) => endpoint(`10.0.0.${index + 1}`, each && { hints: each }));
    const port = only([service()], [slice(endpoints)], { reachesAllZones: true, ...place });
    expect(addresses(port.cluster)).toEqual(expected.map((last) => `10.0.0.${last}`));
  });

  it('are not limited by hints of endpoints that are not ready, nor for policies about this Node', () => {
    const own = { nodeName: 'edge-1', hints: forZone('south') };
    const slices = [
      slice([
        endpoint('10.0.0.1', { hints: forZone('north') }),
        endpoint('10.0.0.2', own),
        endpoint('10.0.0.3', { conditions: { ready: false } }),
      ]),
    ];
    const port = only([service()], slices, { zone: 'north', reachesAllZones: true });
    expect([addresses(port.cluster), addresses(port.local)]).toEqual([['10.0.0.1'], ['10.0.0.2']]);
  });

  it('are not those of other machines in the network of the own pods', () => {
    const slices = [
      slice([
        endpoint('10.88.0.5'),
        endpoint('10.88.0.6', { nodeName: 'edge-1' }),
        endpoint('10.89.0.5'),
        { addresses: ['10.88.0.7'] },
      ]),
    ];
    expect(addresses(only([service()], slices, { podNetworks: ['10.88.0.1/16'] }).cluster)).toEqual([
      '10.88.0.6',
      '10.88.0.7',
      '10.89.0.5',
    ]);
  });

  it('are those of the port with the same name and protocol, of all slices, each once', () => {
    const ports = [
      { name: 'http', port: 80 },
      { name: 'dns', protocol: 'UDP', port: 53, nodePort: 30053 },
    ];
    const both = [
      { name: 'http', port: 8080 },
      { name: 'dns', port: 5353, protocol: 'UDP' },
    ];
    const slices = [
      slice([endpoint('10.0.0.2', { conditions: { ready: false } }), endpoint('10.0.0.1')], { ports: both }),
      slice([endpoint('10.0.0.2')], { ports: [{ name: 'http', port: 8080 }] }),
      slice([endpoint('10.0.0.9')], {}, 'other'),
    ];
    const found = balancedPorts([service({ ports })], slices, PLACE);
    expect(found.map(({ id, nodePort, cluster }) => [id, nodePort, addresses(cluster)])).toEqual([
      ['shop/web/tcp/http', undefined, ['10.0.0.1', '10.0.0.2']],
      ['shop/web/udp/dns', 30053, ['10.0.0.1']],
    ]);
  });

  it('have the family of the address of the Service', () => {
    const spec = { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10', 'fd00::10'] };
    const slices = [slice([endpoint('10.0.0.1')]), slice([endpoint('fd00:1::1')], { addressType: 'IPv6' })];
    const found = balancedPorts([service(spec)], slices, PLACE);
    expect(found.map(({ family, at, cluster }) => [family, at.address, addresses(cluster)])).toEqual([
      ['ip', '10.96.0.10', ['10.0.0.1']],
      ['ip6', 'fd00::10', ['fd00:1::1']],
    ]);
  });
});

describe('a Service', () => {
  it('without a cluster address, or with another proxy, has no port', () => {
    const headless = service({ clusterIP: 'None' });
    const elsewhere = service({ type: 'ExternalName', externalName: 'example.com', clusterIP: '' });
    const proxied = service();
    proxied.metadata.labels = { 'service.kubernetes.io/service-proxy-name': 'other' };
    expect(balancedPorts([headless, elsewhere, proxied], [slice([endpoint('10.0.0.1')])], PLACE)).toEqual([]);
  });

  it('has the time of its session affinity, three hours by default', () => {
    const affinity = { sessionAffinity: 'ClientIP' };
    const seconds = { ...affinity, sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    expect(only([service(affinity)], []).affinitySeconds).toBe(10_800);
    expect(only([service(seconds)], []).affinitySeconds).toBe(60);
    expect(only([service()], []).affinitySeconds).toBeUndefined();
  });

  it('with an address or a port that is none affects no other', () => {
    const odd = [
      service({ clusterIP: 'ten' }, 'a'),
      service({ ports: [{ port: 0 }, { port: 1, protocol: 'QUIC' }] }, 'b'),
    ];
    const slices = [slice([endpoint('nowhere'), { addresses: [] }, endpoint('10.0.0.1')])];
    expect(addresses(only([...odd, service()], slices).cluster)).toEqual(['10.0.0.1']);
  });
});
