/**
 * The rules of nftables that send connections to Services, for one family of addresses.
 *
 * The model is upstream's pkg/proxy/nftables/proxier.go: a map leads from cluster address, protocol and port, and one
 * from node ports, to the chain of a port of a Service, which rewrites the destination to a random endpoint. Rules for
 * Services without endpoints are chains of their own, because only they can refuse a connection.
 *
 * Differences from upstream:
 * - Without session affinity a port has one rule for all its endpoints, not a chain per endpoint: an update of one
 *   endpoint is one rule, and 10,000 endpoints need no 10,000 chains.
 * - A refused TCP connection is reset. Over IPv6, a client on this machine gets no ICMP error of `reject`.
 * - A pod that reaches itself through its Service is found by a set of the addresses of local endpoints.
 * - External addresses of Services are not served: whoever may create a Service could take over any address.
 */
import type { Family } from '../address-ranges.ts';
import type { BalancedPort, Target } from './load-balancing.ts';
import type { NftChain, NftExpression, NftRule, NftSet, NftTable } from './nft-table.ts';

export const SERVICE_TABLE = 'nodekeeper';
/** Bit of the packet mark that kube-proxy uses too, and podman does not. */
const MASQUERADE_BIT = 0x4000;
/** Before addresses are rewritten, so these chains see the address of the Service. */
const FILTER_PRIORITY = -110;
const DESTINATION_PRIORITY = -100;
const SOURCE_PRIORITY = 100;

const SERVICES = 'services';
const REFUSALS = 'refusals';
const REJECT = 'reject';
const DROP_OTHERS = 'drop-others';
const MASQUERADE = 'masquerade';
const ADDRESSES_MAP = 'service-addresses';
const NODE_PORTS_MAP = 'node-ports';
const REFUSED_ADDRESSES_MAP = 'refused-addresses';
const REFUSED_NODE_PORTS_MAP = 'refused-node-ports';
const SELF_SET = 'self';

/** @param ports those of other families are left out */
export function serviceTable(family: Family, ports: readonly BalancedPort[]): NftTable {
  const text = new TableText(family);
  for (const port of ports) if (port.family === family) text.add(port);
  return text.table();
}

const match = (left: unknown, right: unknown, op = '=='): NftExpression => ({ match: { op, left, right } });
const goto = (target: string): NftExpression => ({ goto: { target } });
const jump = (target: string): NftExpression => ({ jump: { target } });
const concat = (...parts: readonly unknown[]): NftExpression => ({ concat: parts });
const MARK = { meta: { key: 'mark' } };
const PROTOCOL = { meta: { key: 'l4proto' } };
const PORT = { payload: { protocol: 'th', field: 'dport' } };
const DROP: NftExpression = { drop: null };
const FROM_THIS_MACHINE = match({ fib: { result: 'type', flags: ['saddr'] } }, 'local');
const MARK_FOR_MASQUERADE: NftExpression = { mangle: { key: MARK, value: { '|': [MARK, MASQUERADE_BIT] } } };
const NEW = { match: { op: 'in', left: { ct: { key: 'state' } }, right: 'new' } };

class TableText {
  readonly #family: Family;
  readonly #saddr: NftExpression;
  readonly #daddr: NftExpression;
  readonly #chains = new Map<string, NftChain>();
  readonly #affinities: string[] = [];
  readonly #maps = new Map<string, Map<string, unknown>>();

  constructor(family: Family) {
    this.#family = family;
    this.#saddr = { payload: { protocol: family, field: 'saddr' } };
    this.#daddr = { payload: { protocol: family, field: 'daddr' } };
  }

  add(port: BalancedPort): void {
    const { protocol, at, nodePort, cluster, local, isInternalLocal, isExternalLocal } = port;
    const key = [at.address, protocol, at.port];
    for (const each of local) this.#element(SELF_SET, [each.address, each.address]);
    if (cluster.length === 0) {
      this.#element(REFUSED_ADDRESSES_MAP, key, goto(REJECT));
      if (nodePort !== undefined) this.#element(REFUSED_NODE_PORTS_MAP, [protocol, nodePort], goto(REJECT));
      return;
    }
    const usesLocal = isInternalLocal || (isExternalLocal && nodePort !== undefined);
    const affinities = this.#affinityChains(port, usesLocal ? [...cluster, ...local] : cluster);
    const clusterChain = this.#balancingChain('cluster', port, cluster, affinities);
    const localChain =
      usesLocal && local.length > 0 ? this.#balancingChain('local', port, local, affinities) : undefined;
    const internal = isInternalLocal ? localChain : clusterChain;
    if (internal === undefined) this.#element(REFUSED_ADDRESSES_MAP, key, DROP);
    else this.#element(ADDRESSES_MAP, key, goto(internal));
    if (nodePort === undefined) return;
    const external = this.#externalChain(port, clusterChain, localChain);
    this.#element(NODE_PORTS_MAP, [protocol, nodePort], goto(external));
    if (isExternalLocal && localChain === undefined) {
      this.#element(REFUSED_NODE_PORTS_MAP, [protocol, nodePort], goto(DROP_OTHERS));
    }
  }

  table(): NftTable {
    const addressKey = concat(this.#daddr, PROTOCOL, PORT);
    const nodePortKey = concat(PROTOCOL, PORT);
    const vmap = (key: unknown, map: string): NftExpression => ({ vmap: { key, data: `@${map}` } });
    const loopback = this.#family === 'ip' ? { prefix: { addr: '127.0.0.0', len: 8 } } : '::1';
    const toThisMachine = [
      match({ fib: { result: 'type', flags: ['daddr'] } }, 'local'),
      match(this.#daddr, loopback, '!='),
    ];
    const hook = (type: 'nat' | 'filter', name: string, prio: number, rules: readonly NftRule[]): NftChain => ({
      hook: { type, hook: name, prio },
      rules,
    });
    const refuse = [[NEW, jump(REFUSALS)]];
    const address = this.#family === 'ip' ? 'ipv4_addr' : 'ipv6_addr';
    const set = (name: string, type: NftSet['type'], map?: 'verdict'): [string, NftSet] => [
      name,
      { type, ...(map === undefined ? {} : { map }), elements: this.#maps.get(name) ?? new Map() },
    ];
    const service = [address, 'inet_proto', 'inet_service'];
    const nodePort = ['inet_proto', 'inet_service'];
    return {
      family: this.#family,
      name: SERVICE_TABLE,
      chains: new Map<string, NftChain>([
        [REJECT, { rules: [[match(PROTOCOL, 'tcp'), { reject: { type: 'tcp reset' } }], [{ reject: null }]] }],
        [DROP_OTHERS, { rules: [[FROM_THIS_MACHINE, { return: null }], [DROP]] }],
        ...this.#chains,
        [
          SERVICES,
          { rules: [[vmap(addressKey, ADDRESSES_MAP)], [...toThisMachine, vmap(nodePortKey, NODE_PORTS_MAP)]] },
        ],
        [
          REFUSALS,
          {
            rules: [
              [vmap(addressKey, REFUSED_ADDRESSES_MAP)],
              [...toThisMachine, vmap(nodePortKey, REFUSED_NODE_PORTS_MAP)],
            ],
          },
        ],
        [MASQUERADE, { rules: this.#masquerading() }],
        ['filter-input', hook('filter', 'input', FILTER_PRIORITY, refuse)],
        ['filter-forward', hook('filter', 'forward', FILTER_PRIORITY, refuse)],
        ['filter-output', hook('filter', 'output', FILTER_PRIORITY, refuse)],
        ['nat-prerouting', hook('nat', 'prerouting', DESTINATION_PRIORITY, [[jump(SERVICES)]])],
        ['nat-output', hook('nat', 'output', DESTINATION_PRIORITY, [[jump(SERVICES)]])],
        ['nat-postrouting', hook('nat', 'postrouting', SOURCE_PRIORITY, [[jump(MASQUERADE)]])],
      ]),
      sets: new Map<string, NftSet>([
        set(ADDRESSES_MAP, service, 'verdict'),
        set(NODE_PORTS_MAP, nodePort, 'verdict'),
        set(REFUSED_ADDRESSES_MAP, service, 'verdict'),
        set(REFUSED_NODE_PORTS_MAP, nodePort, 'verdict'),
        set(SELF_SET, [address, address]),
        ...this.#affinities.map((name): [string, NftSet] => [
          name,
          { type: address, flags: ['timeout'], elements: new Map() },
        ]),
      ]),
    };
  }

  /** The answer of a pod to itself, and those of endpoints elsewhere, must return through this machine. */
  #masquerading(): readonly NftRule[] {
    const isMarked = { '&': [MARK, MASQUERADE_BIT] };
    const masquerade = { masquerade: { flags: 'fully-random' } };
    return [
      [match(concat(this.#saddr, this.#daddr), `@${SELF_SET}`), masquerade],
      [match(isMarked, 0), { return: null }],
      [{ mangle: { key: MARK, value: { '^': [MARK, MASQUERADE_BIT] } } }, masquerade],
    ];
  }

  /** A machine itself is inside: its connections may go to endpoints elsewhere, whatever the policy. */
  #externalChain({ id, isExternalLocal }: BalancedPort, cluster: string, local: string | undefined): string {
    const name = `external/${id}`;
    const rules: NftRule[] = isExternalLocal
      ? [
          [FROM_THIS_MACHINE, MARK_FOR_MASQUERADE],
          [FROM_THIS_MACHINE, goto(cluster)],
          ...(local === undefined ? [] : [[goto(local)]]),
        ]
      : [[MARK_FOR_MASQUERADE], [goto(cluster)]];
    this.#chains.set(name, { rules });
    return name;
  }

  /** The chain of each endpoint that remembers its clients; none without session affinity. */
  #affinityChains({ id, protocol, affinitySeconds }: BalancedPort, targets: readonly Target[]): Affinities {
    const affinities = new Map<string, { readonly chain: string; readonly set: string }>();
    if (affinitySeconds === undefined) return affinities;
    for (const target of targets) {
      const key = textOf(target);
      if (affinities.has(key)) continue;
      const name = `affinity/${id}/${key.replaceAll(':', '.')}`;
      const elem = { elem: { val: this.#saddr, timeout: affinitySeconds } };
      const remember: NftRule = [{ set: { op: 'update', elem, set: `@${name}` } }];
      const rewrite = { dnat: { addr: target.address, port: target.port } };
      this.#chains.set(name, { rules: [remember, [match(PROTOCOL, protocol), rewrite]] });
      this.#affinities.push(name);
      affinities.set(key, { chain: name, set: name });
    }
    return affinities;
  }

  #balancingChain(
    policy: 'cluster' | 'local',
    { id, protocol }: BalancedPort,
    targets: readonly Target[],
    affinities: Affinities,
  ): string {
    const name = `${policy}/${id}`;
    const chains = targets.flatMap((target) => affinities.get(textOf(target)) ?? []);
    const random = { numgen: { mode: 'random', mod: targets.length, offset: 0 } };
    const rules: NftRule[] =
      chains.length > 0
        ? [
            ...chains.map(({ chain, set }) => [match(this.#saddr, `@${set}`), goto(chain)]),
            [{ vmap: { key: random, data: { set: chains.map(({ chain }, index) => [index, goto(chain)]) } } }],
          ]
        : [[match(PROTOCOL, protocol), this.#rewriteToAny(targets, random)]];
    this.#chains.set(name, { rules });
    return name;
  }

  #rewriteToAny(targets: readonly Target[], random: NftExpression): NftExpression {
    const [only] = targets;
    if (targets.length === 1 && only !== undefined) return { dnat: { addr: only.address, port: only.port } };
    const data = { set: targets.map(({ address, port }, index) => [index, concat(address, port)]) };
    return { dnat: { family: this.#family, addr: { map: { key: random, data } } } };
  }

  /** Of two with the same key the first one counts: the kernel would refuse the whole transaction. */
  #element(map: string, key: readonly (string | number)[], verdict?: NftExpression): void {
    const elements = this.#maps.get(map) ?? new Map<string, unknown>();
    this.#maps.set(map, elements);
    const text = key.join(' ');
    if (elements.has(text)) return;
    elements.set(text, verdict === undefined ? concat(...key) : [concat(...key), verdict]);
  }
}

type Affinities = ReadonlyMap<string, { readonly chain: string; readonly set: string }>;

const textOf = ({ address, port }: Target): string => `${address}/${port}`;
