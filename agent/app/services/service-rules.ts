/**
 * Brings the packet filter of this machine to the Services of the cluster, and answers their names.
 *
 *   copy on disk → rules;  then: news, or half an hour → read what changed → rules → copy on disk
 *
 * A heartbeat's answer brings the news. A read after half an hour finds what a lost answer would have brought, and
 * continues before the cluster forgets the changes since the last one. Without Services there is none. One pass runs at
 * a time; news meanwhile causes one more. A pass decides from the whole copy, so it may be repeated, late, or
 * killed at any step:
 * - Before the rules are applied: the packet filter has the old rules, as a whole. The next process replaces them all.
 * - Before the copy is on disk: the next process begins with the older one, and reads the same changes again.
 * - After that: the next pass finds no difference, and writes nothing.
 *
 * A pass that fails is repeated with growing waits. Meanwhile the last rules stay, and pods run on. A disk that is full
 * does not block rules.
 */
import { defined } from '../../../shared/defined.ts';
import { ZONE_LABEL } from '../../../shared/fleet/nodes/node-digest.ts';
import type { KubeNode } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { AgentMeter } from '../../ports/meter.ts';
import type { PacketFilter } from '../../ports/packet-filter.ts';
import type { AgentTime, Fraction } from '../../ports/time.ts';
import type { Family } from '../../rules/address-ranges.ts';
import { isolations } from '../../rules/network-policy/isolations.ts';
import { POLICY_TABLE, policyTable } from '../../rules/network-policy/policy-table.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import { balancedPorts } from '../../rules/services/load-balancing.ts';
import { type NameAnswer, ServiceNames } from '../../rules/services/names.ts';
import { type NftState, type NftTable, nftCheck, nftRemoval, nftUpdate } from '../../rules/services/nft-table.ts';
import { SERVICE_TABLE, serviceTable } from '../../rules/services/service-table.ts';
import { describeError } from '../describe-error.ts';
import type { ServiceObjects, ServicesRead } from './read-service-objects.ts';

/** The cluster keeps changes for an hour. */
const REFRESH_MS = 1_800_000;
const DAY_MS = 86_400_000;
const JITTER = 0.1;
/** Changes of one second are one pass. Also for kernels that notice late that a chain is not used any more. */
const BETWEEN_PASSES_MS = 1_000;
const RETRY_FIRST_MS = 5_000;
const RETRY_MAX_MS = 300_000;
const FAMILIES: readonly Family[] = ['ip', 'ip6'];

export interface ServiceRulesDependencies {
  readonly nodeName: string;
  readonly endpoints: 'zone' | 'all';
  readonly domain: string;
  /** Undefined before the registration. */
  readonly node: () => KubeNode | undefined;
  readonly read: (known: ServiceObjects | undefined, stop: AbortSignal) => Promise<ServicesRead>;
  readonly memory: ServiceMemory;
  readonly filter: PacketFilter;
  /** Networks of the pods of this machine, as CIDRs. */
  readonly podNetworks: () => Promise<readonly string[]>;
  /** The kernel shows packets between pods of one bridge to its packet filter. */
  readonly filtersBridges: () => Promise<boolean>;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter: AgentMeter;
  readonly recordEvent: (event: NodeEvent) => void;
}

export interface RememberedServices {
  readonly objects: ServiceObjects;
  /** The zone of this machine, which decides about endpoints. */
  readonly zone?: string;
}

interface WantedTable {
  readonly family: Family;
  readonly name: string;
  /** Otherwise it is not written before it was needed once. */
  readonly isNeeded: boolean;
  readonly table: () => NftTable;
}

/** The last known Services on the disk of this machine. A restart without the API begins with them. */
export interface ServiceMemory {
  /** Undefined: none, or none that can be used. Never rejects. */
  read(): Promise<RememberedServices | undefined>;
  /** @throws Error of the file system */
  write(remembered: RememberedServices): Promise<void>;
}

export class ServiceRules {
  readonly #dependencies: ServiceRulesDependencies;
  #known: RememberedServices | undefined;
  #isSaved = true;
  #names: ServiceNames;
  /** What the packet filter has, by table; undefined: unknown. */
  #states: ReadonlyMap<string, NftState> | undefined;
  /** What policies ask for in vain, as it was reported. */
  #unenforced: ReadonlySet<string> = new Set();
  #wake = new AbortController();
  #isNews = false;
  #complaint: string | undefined;

  constructor(dependencies: ServiceRulesDependencies) {
    this.#dependencies = dependencies;
    this.#names = new ServiceNames(dependencies.domain, [], []);
  }

  /** Services of the cluster have changed. */
  changed(): void {
    this.#isNews = true;
    this.#wake.abort();
  }

  /** Why the last pass failed; undefined: it did not. */
  complaint(): string | undefined {
    return this.#complaint;
  }

  answer(name: string, type: string): NameAnswer {
    return this.#names.answer(name, type);
  }

  /** @param registered resolves when the cluster knows this machine */
  async run(registered: Promise<unknown>, stop: AbortSignal): Promise<void> {
    const { memory, time, fraction } = this.#dependencies;
    const remembered = await memory.read();
    if (remembered !== undefined) {
      this.#use(remembered);
      await this.#pass(() => this.#apply());
    }
    await registered;
    for (let failures = 0; !stop.aborted; ) {
      this.#wake = new AbortController();
      const isNews = this.#isNews;
      this.#isNews = false;
      const isDone = await this.#pass(() => this.#follow(isNews, stop));
      failures = isDone ? 0 : failures + 1;
      const refreshMs = (this.#known?.objects.endpointSlices ?? []).length > 0 ? REFRESH_MS : DAY_MS;
      const retryMs = Math.min(RETRY_FIRST_MS * 2 ** (failures - 1), RETRY_MAX_MS);
      const waitMs = isDone ? refreshMs : retryMs;
      await time.sleep(BETWEEN_PASSES_MS, stop);
      await time.sleep(waitMs * (1 + JITTER * fraction()), AbortSignal.any([stop, this.#wake.signal]));
    }
  }

  /** Whether it succeeded. */
  async #pass(work: () => Promise<void>): Promise<boolean> {
    const { log, meter, recordEvent } = this.#dependencies;
    const before = this.#complaint;
    try {
      await work();
      this.#complaint = undefined;
    } catch (cause) {
      this.#complaint = describeError(cause);
    }
    const why = this.#complaint;
    // Once per reason.
    if (why !== undefined && why !== before) {
      log.warn('the rules of Services are not up to date; it is tried again', { why });
      const message = `Services of the cluster are not up to date on this node: ${why}`;
      recordEvent({ type: 'Warning', reason: 'ServicesNotRouted', message });
    } else if (why === undefined && before !== undefined) {
      log.info('Services are routed again');
      recordEvent({ type: 'Normal', reason: 'ServicesRouted', message: 'Services of the cluster are routed again' });
    }
    meter.count('nodekeeper_agent_service_passes_total', { outcome: why === undefined ? 'done' : 'failed' });
    return why === undefined;
  }

  async #follow(isNews: boolean, stop: AbortSignal): Promise<void> {
    const { read, node, memory } = this.#dependencies;
    const found = await read(this.#known?.objects, stop);
    if (found.kind === 'failed') throw new Error(found.why);
    const zone = node()?.metadata.labels?.[ZONE_LABEL];
    const known = { objects: found.objects, ...defined({ zone }) };
    if (found.isChanged || zone !== this.#known?.zone) this.#isSaved = false;
    if (found.isChanged) this.#use(known);
    // Also without a change of an object the next read continues from here.
    this.#known = known;
    await this.#apply(!isNews);
    if (this.#isSaved) return;
    await memory.write(known);
    this.#isSaved = true;
  }

  #use(known: RememberedServices): void {
    const { domain, meter } = this.#dependencies;
    const { services, endpointSlices } = known.objects;
    this.#known = known;
    this.#names = new ServiceNames(domain, services, endpointSlices);
    meter.gauge('nodekeeper_agent_services', services.length);
  }

  /** Each once. */
  async #reportUnenforced(pods: readonly string[], isIsolated: boolean): Promise<void> {
    const { filtersBridges, recordEvent } = this.#dependencies;
    const faults = pods.map((pod) => `pod ${pod} has the address of this node, so no policy is enforced for it`);
    if (isIsolated && !(await filtersBridges())) {
      faults.push(
        'connections between pods of this node are not filtered: net.bridge.bridge-nf-call-iptables is not 1',
      );
    }
    for (const fault of faults) {
      if (this.#unenforced.has(fault)) continue;
      recordEvent({ type: 'Warning', reason: 'NetworkPolicyNotEnforced', message: `NetworkPolicies: ${fault}` });
    }
    this.#unenforced = new Set(faults);
  }

  /**
   * @param isCheck also without a difference: another program may have removed our table, as `nft flush ruleset` does
   * @throws PacketFilterError
   */
  async #apply(isCheck = false): Promise<void> {
    const { nodeName, endpoints, filter, podNetworks, meter } = this.#dependencies;
    const {
      services = [],
      endpointSlices = [],
      networkPolicies = [],
      pods = [],
      namespaces = [],
    } = this.#known?.objects ?? {};
    const reachesAllZones = endpoints === 'all';
    const place = {
      nodeName,
      podNetworks: await podNetworks(),
      reachesAllZones,
      ...defined({ zone: this.#known?.zone }),
    };
    const ports = balancedPorts(services, endpointSlices, place);
    const isolationsOf = (family: Family) =>
      isolations({ policies: networkPolicies, pods, namespaces }, { ...place, family });
    const policies = { ip: isolationsOf('ip'), ip6: isolationsOf('ip6') };
    const tables = FAMILIES.flatMap((family): readonly WantedTable[] => {
      const { isolated } = policies[family];
      const hasPorts = ports.some((port) => port.family === family);
      return [
        { family, name: SERVICE_TABLE, isNeeded: hasPorts, table: () => serviceTable(family, ports) },
        { family, name: POLICY_TABLE, isNeeded: isolated.length > 0, table: () => policyTable(family, isolated) },
      ];
    });
    const isIsolated = tables.some(({ name, isNeeded }) => name === POLICY_TABLE && isNeeded);
    await this.#reportUnenforced(policies.ip.unenforced, isIsolated);
    const before = this.#states;
    const next = new Map<string, NftState>();
    const commands = tables.flatMap(({ family, name, isNeeded, table }) => {
      const key = `${family} ${name}`;
      const known = before?.get(key);
      if (known === undefined && !isNeeded) {
        // A previous process may have written this table.
        return before === undefined ? nftRemoval({ family, name }) : [];
      }
      const update = nftUpdate(known, table());
      next.set(key, update.state);
      return update.commands;
    });
    const checks = commands.length === 0 && isCheck ? [...next.values()].flatMap(nftCheck) : [];
    if (commands.length + checks.length > 0) {
      // If it fails, what the packet filter has is unknown: the next pass replaces all of it.
      this.#states = undefined;
      await filter.apply([...commands, ...checks]);
    }
    if (commands.length > 0) meter.count('nodekeeper_agent_service_rule_updates_total');
    this.#states = next;
    meter.gauge('nodekeeper_agent_service_ports', ports.length);
  }
}
