import { describe, expect, it } from 'vitest';
import type { KubePod, PodSpec } from '../../../shared/kinds/types.ts';
import { parseResolver, podResolver, resolverText } from './pod-resolver.ts';

const DNS = { address: '169.254.20.10', domain: 'cluster.local' };

const resolvConf = (spec: Partial<PodSpec>, searches: string[] = []): string | undefined => {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name: 'web' }, spec } as KubePod;
  const resolver = podResolver(pod, DNS, { searches });
  return resolver && resolverText(resolver);
};

const OF_CLUSTER = `search shop.svc.cluster.local svc.cluster.local cluster.local site.example
nameserver 169.254.20.10
options ndots:5
`;

describe('the resolver of a pod', () => {
  it('is that of the cluster by default, and with the network of the machine if the pod says so', () => {
    expect(resolvConf({}, ['site.example'])).toBe(OF_CLUSTER);
    expect(resolvConf({ hostNetwork: true }, ['site.example'])).toBeUndefined();
    expect(resolvConf({ hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }, ['site.example'])).toBe(OF_CLUSTER);
  });

  it('is that of the machine with the policy Default', () => {
    expect(resolvConf({ dnsPolicy: 'Default' })).toBeUndefined();
  });

  it('is what the pod says with the policy None, and has that in addition otherwise', () => {
    const dnsConfig = {
      nameservers: ['192.0.2.1', '169.254.20.10', '192.0.2.2', '192.0.2.3'],
      searches: ['own.example'],
      options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
    };
    expect(resolvConf({ dnsPolicy: 'None', dnsConfig })).toBe(`search own.example
nameserver 192.0.2.1
nameserver 169.254.20.10
nameserver 192.0.2.2
options ndots:2 edns0
`);
    expect(resolvConf({ dnsConfig })).toBe(`search shop.svc.cluster.local svc.cluster.local cluster.local own.example
nameserver 169.254.20.10
nameserver 192.0.2.1
nameserver 192.0.2.2
options ndots:2 edns0
`);
  });

  it('is read from a file of the machine', () => {
    const text =
      '# comment\nsearch old.example\nnameserver 192.0.2.1\n nameserver fd00::1\nsearch a.example b.example\noptions edns0 trust-ad\n';
    expect(parseResolver(text)).toEqual({
      nameservers: ['192.0.2.1', 'fd00::1'],
      searches: ['a.example', 'b.example'],
      options: ['edns0', 'trust-ad'],
    });
  });
});
