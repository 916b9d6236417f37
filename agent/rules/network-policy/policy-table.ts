/**
 * The rules of nftables that enforce NetworkPolicies, for one family of addresses.
 *
 * They are in the hook of forwarded packets, after addresses of Services are rewritten. The packets of the machine
 * itself, such as probes, are not forwarded. Each isolated pod has a chain per direction: an allowed packet returns
 * from it, another one is dropped. Packets of accepted connections, and what belongs to them, pass first, so a new
 * policy does not cut an open connection.
 */

import { type AddressRange, type Family, textOf } from '../address-ranges.ts';
import type { NftChain, NftExpression, NftRule, NftSet, NftTable } from '../services/nft-table.ts';
import type { AllowRule, Isolation, PortRange } from './isolations.ts';

export const POLICY_TABLE = 'nodekeeper-policy';
/** After the rewriting of destinations. */
const PRIORITY = 0;

const match = (left: unknown, right: unknown, op = '=='): NftExpression => ({ match: { op, left, right } });
const RETURN: NftExpression = { return: null };
const DROP: NftExpression = { drop: null };
const PROTOCOL = { meta: { key: 'l4proto' } };
const PORT = { payload: { protocol: 'th', field: 'dport' } };
const OPEN: NftRule = [
  { match: { op: 'in', left: { ct: { key: 'state' } }, right: ['established', 'related'] } },
  { accept: null },
];
/**
 * Pods of one bridge find each other by these. They are of no connection, and many are to a group, so no rule of a
 * policy allows them. No router forwards them. Those of routers are left out: no pod is one.
 */
const NEIGHBOURS: NftRule = [
  {
    match: {
      op: '==',
      left: { payload: { protocol: 'icmpv6', field: 'type' } },
      right: { set: ['nd-neighbor-solicit', 'nd-neighbor-advert'] },
    },
  },
  { accept: null },
];

export function policyTable(family: Family, isolated: readonly Isolation[]): NftTable {
  const addressOf = (field: 'saddr' | 'daddr'): NftExpression => ({ payload: { protocol: family, field } });
  const chains = new Map<string, NftChain>();
  const type = family === 'ip' ? 'ipv4_addr' : 'ipv6_addr';
  const sets = new Map<string, NftSet>();
  const add = (direction: 'ingress' | 'egress', own: 'saddr' | 'daddr', peer: 'saddr' | 'daddr'): void => {
    const elements = new Map<string, unknown>();
    for (const isolation of isolated) {
      const rules = isolation[direction];
      if (rules === undefined) continue;
      const text = textOf(isolation.address, family);
      const name = `${direction}/${text.replaceAll(':', '.')}`;
      // A pod may always connect to itself.
      const self: NftRule = [match(addressOf(peer), text), RETURN];
      const allowed = rules.flatMap((rule) => rulesOf(rule, addressOf(peer), family));
      chains.set(name, { rules: [self, ...allowed, [DROP]] });
      elements.set(text, [text, { jump: { target: name } }]);
    }
    sets.set(direction, { type, map: 'verdict', elements });
    chains.set(direction, { rules: [[{ vmap: { key: addressOf(own), data: `@${direction}` } }]] });
  };
  add('egress', 'saddr', 'daddr');
  add('ingress', 'daddr', 'saddr');
  const forward = { type: 'filter', hook: 'forward', prio: PRIORITY } as const;
  const both: NftRule[] = ['egress', 'ingress'].map((target) => [{ jump: { target } }]);
  chains.set('forward', { hook: forward, rules: [OPEN, ...(family === 'ip6' ? [NEIGHBOURS] : []), ...both] });
  return { family, name: POLICY_TABLE, chains, sets };
}

function rulesOf({ peers, ports }: AllowRule, peer: NftExpression, family: Family): readonly NftRule[] {
  if (peers?.length === 0) return [];
  const from = peers === undefined ? [] : [match(peer, { set: peers.map((range) => elementOf(range, family)) })];
  if (ports === undefined) return [[...from, RETURN]];
  return ports.map((port) => [...from, ...portMatches(port), RETURN]);
}

const elementOf = ([first, last]: AddressRange, family: Family): unknown =>
  first === last ? textOf(first, family) : { range: [textOf(first, family), textOf(last, family)] };

function portMatches({ protocol, first, last }: PortRange): readonly NftExpression[] {
  const ofProtocol = match(PROTOCOL, protocol);
  if (first === undefined) return [ofProtocol];
  return [ofProtocol, match(PORT, first === last ? first : { range: [first, last] })];
}
