import { describe, expect, it } from 'vitest';
import { addressOf, rangesOf } from '../address-ranges.ts';
import type { AllowRule } from './isolations.ts';
import { policyTable } from './policy-table.ts';

const match = (left: unknown, right: unknown) => ({ match: { op: '==', left, right } });
const peer = (field: string, protocol = 'ip') => ({ payload: { protocol, field } });
const PORT = { payload: { protocol: 'th', field: 'dport' } };
const PROTOCOL = { meta: { key: 'l4proto' } };
const RETURN = { return: null };
const DROP = { drop: null };

/** The chain of a pod with these rules for its ingress. */
const rulesOf = (ingress: readonly AllowRule[]) =>
  policyTable('ip', [{ address: addressOf('10.0.0.1', 'ip')!, ingress }]).chains.get('ingress/10.0.0.1')?.rules;
const SELF = [match(peer('saddr'), '10.0.0.1'), RETURN];

describe('the chain of an isolated pod', () => {
  it.each<[string, AllowRule, unknown]>([
    ['anyone', {}, [[RETURN]]],
    ['no peer', { peers: [] }, []],
    [
      'an address and a network',
      { peers: rangesOf(['10.0.0.9/32', '10.1.0.0/16'], 'ip') },
      [[match(peer('saddr'), { set: ['10.0.0.9', { range: ['10.1.0.0', '10.1.255.255'] }] }), RETURN]],
    ],
    ['all ports of a protocol', { ports: [{ protocol: 'udp' }] }, [[match(PROTOCOL, 'udp'), RETURN]]],
    [
      'a port',
      { ports: [{ protocol: 'tcp', first: 80, last: 80 }] },
      [[match(PROTOCOL, 'tcp'), match(PORT, 80), RETURN]],
    ],
    [
      'some ports of a peer',
      {
        peers: rangesOf(['10.0.0.9/32'], 'ip'),
        ports: [{ protocol: 'tcp', first: 80, last: 90 }, { protocol: 'sctp' }],
      },
      [
        [match(peer('saddr'), { set: ['10.0.0.9'] }), match(PROTOCOL, 'tcp'), match(PORT, { range: [80, 90] }), RETURN],
        [match(peer('saddr'), { set: ['10.0.0.9'] }), match(PROTOCOL, 'sctp'), RETURN],
      ],
    ],
    ['no port', { ports: [] }, []],
  ])('allows itself and %s, and drops the rest', (_, rule, allowed) => {
    expect(rulesOf([rule])).toEqual([SELF, ...(allowed as object[]), [DROP]]);
  });
});

describe('the table', () => {
  it('leads the packets of each isolated pod to its chain, by direction', () => {
    const address = addressOf('fd00::1', 'ip6')!;
    const { family, name, chains, sets } = policyTable('ip6', [{ address, egress: [] }]);
    expect([family, name]).toEqual(['ip6', 'nodekeeper-policy']);
    expect(chains.get('egress/fd00..1')?.rules).toEqual([[match(peer('daddr', 'ip6'), 'fd00::1'), RETURN], [DROP]]);
    expect(chains.has('ingress/fd00..1')).toBe(false);
    expect(chains.get('egress')?.rules).toEqual([[{ vmap: { key: peer('saddr', 'ip6'), data: '@egress' } }]]);
    expect(chains.get('ingress')?.rules).toEqual([[{ vmap: { key: peer('daddr', 'ip6'), data: '@ingress' } }]]);
    expect(sets.get('egress')).toEqual({
      type: 'ipv6_addr',
      map: 'verdict',
      elements: new Map([['fd00::1', ['fd00::1', { jump: { target: 'egress/fd00..1' } }]]]),
    });
    expect(sets.get('ingress')?.elements.size).toBe(0);
    expect(policyTable('ip', []).sets.get('ingress')?.type).toBe('ipv4_addr');
  });

  it('lets accepted connections pass first, then asks for the egress and the ingress of forwarded packets', () => {
    const { chains } = policyTable('ip', []);
    expect(chains.get('forward')).toEqual({
      hook: { type: 'filter', hook: 'forward', prio: 0 },
      rules: [
        [{ match: { op: 'in', left: { ct: { key: 'state' } }, right: ['established', 'related'] } }, { accept: null }],
        [{ jump: { target: 'egress' } }],
        [{ jump: { target: 'ingress' } }],
      ],
    });
  });

  it('lets IPv6 pods find their neighbours, whatever the policies say', () => {
    const [open, neighbours, ...rest] = policyTable('ip6', []).chains.get('forward')!.rules;
    expect(neighbours).toEqual([
      match(peer('type', 'icmpv6'), { set: ['nd-neighbor-solicit', 'nd-neighbor-advert'] }),
      { accept: null },
    ]);
    expect([open, ...rest]).toEqual(policyTable('ip', []).chains.get('forward')!.rules);
  });
});
