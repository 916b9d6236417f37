import { describe, expect, it } from 'vitest';
import type { KubeEndpointSlice, KubeService, ServiceSpec } from '../../../shared/kinds/types.ts';
import { ServiceNames } from './names.ts';

const service = (name: string, spec: Partial<ServiceSpec>): KubeService => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'shop', name },
  spec: { ports: [{ name: 'http', port: 80 }], ...spec },
});

const slice: KubeEndpointSlice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { namespace: 'shop', name: 'db-1', labels: { 'kubernetes.io/service-name': 'db' } },
  addressType: 'IPv4',
  endpoints: [
    { addresses: ['10.0.0.1'], hostname: 'db-0' },
    { addresses: ['10.0.0.2'] },
    { addresses: ['10.0.0.3'], hostname: 'db-2', conditions: { ready: false } },
  ],
  ports: [{ name: 'http', port: 5432 }],
};

const names = new ServiceNames(
  'cluster.local',
  [
    service('web', { clusterIP: '10.96.0.10', clusterIPs: ['10.96.0.10', 'fd00::10'] }),
    service('db', { clusterIP: 'None' }),
    service('mail', { type: 'ExternalName', externalName: 'mail.example.com' }),
  ],
  [slice],
);

const answersTo = (name: string, type = 'A') => {
  const answer = names.answer(name, type);
  if (answer.kind !== 'records') return answer.kind;
  return answer.answers.map((each) => (each.type === 'SRV' ? `${each.data.port} ${each.data.target}` : each.data));
};

describe('the name of a Service', () => {
  it('has its address, of each family alone', () => {
    expect(answersTo('web.shop.svc.cluster.local')).toEqual(['10.96.0.10']);
    expect(answersTo('WEB.Shop.svc.cluster.local')).toEqual(['10.96.0.10']);
    expect(answersTo('web.shop.svc.cluster.local', 'AAAA')).toEqual(['fd00::10']);
    expect(answersTo('web.shop.svc.cluster.local', 'MX')).toEqual([]);
  });

  it('has the ready endpoints of a headless Service, each with a name of its own', () => {
    expect(answersTo('db.shop.svc.cluster.local')).toEqual(['10.0.0.1', '10.0.0.2']);
    expect(answersTo('db.shop.svc.cluster.local', 'AAAA')).toEqual([]);
    expect(answersTo('db-0.db.shop.svc.cluster.local')).toEqual(['10.0.0.1']);
    expect(answersTo('10-0-0-2.db.shop.svc.cluster.local')).toEqual(['10.0.0.2']);
    expect(answersTo('db-2.db.shop.svc.cluster.local')).toBe('unknown');
    expect(answersTo('db-0.web.shop.svc.cluster.local')).toBe('unknown');
  });

  it('has its named ports', () => {
    expect(answersTo('_http._tcp.web.shop.svc.cluster.local', 'SRV')).toEqual(['80 web.shop.svc.cluster.local']);
    expect(answersTo('_http._tcp.db.shop.svc.cluster.local', 'SRV')).toEqual([
      '5432 db-0.db.shop.svc.cluster.local',
      '5432 10-0-0-2.db.shop.svc.cluster.local',
    ]);
    expect(names.answer('_http._tcp.web.shop.svc.cluster.local', 'SRV')).toMatchObject({
      additionals: [{ name: 'web.shop.svc.cluster.local', type: 'A', data: '10.96.0.10' }, { type: 'AAAA' }],
    });
    expect(answersTo('_http._udp.web.shop.svc.cluster.local', 'SRV')).toBe('unknown');
    expect(answersTo('_https._tcp.web.shop.svc.cluster.local', 'SRV')).toBe('unknown');
    expect(answersTo('_tcp.web.shop.svc.cluster.local', 'SRV')).toEqual([]);
  });

  it('is an alias for an ExternalName', () => {
    expect(names.answer('mail.shop.svc.cluster.local', 'A')).toMatchObject({
      kind: 'alias',
      target: 'mail.example.com',
      record: { type: 'CNAME', data: 'mail.example.com' },
    });
  });

  it('is unknown when it does not exist, and elsewhere outside of the cluster', () => {
    expect(answersTo('absent.shop.svc.cluster.local')).toBe('unknown');
    expect(answersTo('web.other.svc.cluster.local')).toBe('unknown');
    expect(answersTo('shop.svc.cluster.local')).toEqual([]);
    expect(answersTo('svc.cluster.local')).toEqual([]);
    expect(answersTo('example.com')).toBe('elsewhere');
    expect(answersTo('web.shop.svc.cluster.local.example.com')).toBe('elsewhere');
    expect(answersTo('notcluster.local')).toBe('elsewhere');
    expect(answersTo('dns-version.cluster.local', 'TXT')).toEqual(['1.1.0']);
  });
});

describe('an address', () => {
  it('has the name of its Service, or of the endpoint with a host name', () => {
    expect(answersTo('10.0.96.10.in-addr.arpa', 'PTR')).toEqual(['web.shop.svc.cluster.local']);
    expect(answersTo('1.0.0.10.in-addr.arpa', 'PTR')).toEqual(['db-0.db.shop.svc.cluster.local']);
    expect(answersTo('2.0.0.10.in-addr.arpa', 'PTR')).toBe('elsewhere');
  });

  it('has a name, and of other types no records', () => {
    expect(answersTo('10.0.96.10.in-addr.arpa', 'A')).toEqual([]);
    expect(answersTo('10.0.96.10.IN-ADDR.ARPA', 'PTR')).toEqual(['web.shop.svc.cluster.local']);
    expect(answersTo('x10.0.96.10.in-addr.arpa', 'PTR')).toBe('elsewhere');
    expect(answersTo('10.0.96.10.in-addr.arpa.example.com', 'PTR')).toBe('elsewhere');
  });
});

describe('names without records', () => {
  it.each([
    ['cluster.local', 'A', []],
    ['x.cluster.local', 'A', 'unknown'],
    ['shop.pod.cluster.local', 'A', 'unknown'],
    ['dns-version.cluster.local', 'A', []],
    ['other.svc.cluster.local', 'A', 'unknown'],
    ['x.web.shop.svc.cluster.local', 'A', 'unknown'],
    ['x.db-0.db.shop.svc.cluster.local', 'A', 'unknown'],
    ['x.mail.shop.svc.cluster.local', 'A', 'unknown'],
    ['_http._tcp.web.shop.svc.cluster.local', 'A', []],
    ['_x._http._tcp.web.shop.svc.cluster.local', 'SRV', 'unknown'],
    ['_udp.web.shop.svc.cluster.local', 'SRV', 'unknown'],
    ['_http.web.shop.svc.cluster.local', 'SRV', 'unknown'],
  ])('%s of the type %s: %j', (name, type, expected) => {
    expect(answersTo(name, type)).toEqual(expected);
  });
});

describe('the ports of a headless Service', () => {
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: '', port: 80 },
    { name: 'admin', port: 81 },
  ];
  const endpoint = (address: string, hostname?: string) => ({ addresses: [address], ...(hostname && { hostname }) });
  const sliceOf = (endpoints: NonNullable<KubeEndpointSlice['endpoints']>, port: number) => ({
    ...slice,
    endpoints,
    ports: [{ name: 'dns', port }],
  });
  const headless = new ServiceNames(
    'cluster.local',
    [service('db', { clusterIP: 'None', ports })],
    [
      sliceOf([endpoint('10.0.0.1', 'A'), endpoint('no address'), { addresses: [] }], 5_353),
      sliceOf([endpoint('10.0.0.1', 'b'), endpoint('fd00::1')], 5_354),
      { ...sliceOf([endpoint('10.0.0.9')], 1), metadata: { namespace: 'other', labels: slice.metadata.labels! } },
      { ...sliceOf([endpoint('10.0.0.8')], 1), metadata: { namespace: 'shop' } },
    ],
  );

  it('are those of each endpoint, once, with its first name in small letters', () => {
    expect(headless.answer('_dns._udp.db.shop.svc.cluster.local', 'SRV')).toEqual({
      kind: 'records',
      answers: [
        [5_353, 'a.db.shop.svc.cluster.local'],
        [5_354, 'fd00--1.db.shop.svc.cluster.local'],
      ].map(([port, target]) => ({
        name: '_dns._udp.db.shop.svc.cluster.local',
        type: 'SRV',
        data: { priority: 0, weight: 100, port, target },
      })),
      additionals: [
        { name: 'a.db.shop.svc.cluster.local', type: 'A', data: '10.0.0.1' },
        { name: 'fd00--1.db.shop.svc.cluster.local', type: 'AAAA', data: 'fd00::1' },
      ],
    });
  });

  it('are none where no endpoint has the port, or it has no name', () => {
    const none = { kind: 'records', answers: [], additionals: [] };
    expect(headless.answer('_admin._tcp.db.shop.svc.cluster.local', 'SRV')).toEqual(none);
    expect(headless.answer('_._tcp.db.shop.svc.cluster.local', 'SRV')).toEqual({ kind: 'unknown' });
    expect(headless.answer('1.0.0.10.in-addr.arpa', 'PTR')).toMatchObject({
      answers: [{ data: 'a.db.shop.svc.cluster.local' }],
    });
  });

  it('and its addresses are a thousand at most', () => {
    const many = Array.from({ length: 1_001 }, (_, n) => endpoint(`10.1.${n >> 8}.${n & 255}`));
    const large = new ServiceNames('cluster.local', [service('db', { clusterIP: 'None' })], [sliceOf(many, 1)]);
    const answer = large.answer('db.shop.svc.cluster.local', 'A');
    expect(answer.kind === 'records' && answer.answers.length).toBe(1_000);
  });
});
