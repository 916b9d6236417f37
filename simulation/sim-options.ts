/** Options and result of a run of the simulation. */
import type { RelayRouteOptions } from '../agent/app/relay-route.ts';
import type { KubeApi } from '../agent/ports/kube-api.ts';
import type { TickQueue } from '../functions/node-monitor/chain.ts';
import type { Probe } from '../functions/node-monitor/probes.ts';
import type { FleetControllers } from '../server/fleet-controllers.ts';
import type { Authenticator } from '../shared/access/authenticator.ts';
import type { RequestLimits } from '../shared/access/request-throttle.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import type { ItemStore } from '../shared/store/item-store.ts';
import type { Mark } from './coverage.ts';
import type { FaultName } from './faults/catalogue.ts';
import type { ClockMode } from './faults/lying-clocks.ts';
import type { Process } from './faults/processes.ts';
import type { PlantedHub } from './hub-process.ts';
import type { Broken } from './laws/law.ts';
import type { TroubleName } from './offline-machines.ts';
import type { OfflineRules } from './offline-rules.ts';
import type { PartName } from './parts.ts';
import type { SiteTrouble } from './site-witnesses.ts';

export interface SimOptions {
  readonly seed: number;
  readonly hours: number;
  /** Machines at the beginning. Default: by the seed. */
  readonly nodes?: number;
  /** Where the tables are. Default: memory. */
  readonly store?: 'memory' | 'sqlite';
  /** Default: those of the seed. */
  readonly faults?: readonly FaultName[];
  /** Mean number of faults in one storm, out of all faults. */
  readonly faultsAStorm?: number;
  /** Parts of the world that only some seeds have. Default: those of the seed. */
  readonly parts?: readonly PartName[];
  /**
   * What befalls machines of the part `offlineStop`. Default: everything. Empty: no machine has any accident but the
   * power cuts of the part `reschedule`.
   */
  readonly troubles?: readonly TroubleName[];
  /** What befalls sites of the part `witnesses`. Default: everything. */
  readonly siteTroubles?: readonly SiteTrouble[];
  /** Receives each mark of a node that was Ready. */
  readonly onMarked?: (mark: MarkOfNode) => void;
  /** Replaces fields of the seed's policy. */
  readonly policy?: Partial<Policy>;
  /** Clocks of the machines of `lyingClocks`. Everything else is the same. Default: any. */
  readonly clocks?: ClockMode;
  /** Receives each decision with its time. */
  readonly onDecision?: (decision: Decision) => void;
  /** A bug to plant: the laws must find it. */
  readonly plant?: {
    readonly items?: (items: ItemStore, process: Process) => ItemStore;
    readonly policy?: (policy: Policy) => Policy;
    /** One for each way of a heartbeat. */
    readonly probes?: (probes: readonly Probe[]) => readonly Probe[];
    readonly tickQueue?: (queue: TickQueue) => TickQueue;
    readonly authenticator?: (authenticator: Authenticator) => Authenticator;
    /** How a machine of a site sends its heartbeats. */
    readonly relayRoute?: (options: RelayRouteOptions) => KubeApi;
    readonly controllers?: (controllers: FleetControllers, queue: TickQueue) => FleetControllers;
    /** How a machine decides what stops without a link. */
    readonly offlineRules?: Partial<OfflineRules>;
    readonly hub?: PlantedHub;
    /** What one identity may use. */
    readonly limits?: (limits: RequestLimits) => RequestLimits;
  };
}

/** How a mark compares with the true machine. */
export interface MarkOfNode {
  /** It rests on witnesses. */
  readonly isWitnessed: boolean;
  /** The machine was on. */
  readonly wasOn: boolean;
  /** Since its last answer on the network of its site; undefined: there was none, or no site. */
  readonly sinceAnswerMs: number | undefined;
}

/** A mark, taint, lift or deletion that no person or machine requested. */
export interface Decision {
  /** From the start. */
  readonly atMs: number;
  readonly subject: string;
  readonly text: string;
  /** It is about a machine of `lyingClocks`, or a pod on it. */
  readonly isOfWrongClock: boolean;
}

export interface SimFailure extends Broken {
  readonly seed: number;
  readonly step: number;
  /** From the start. */
  readonly atMs: number;
  /** The last lines about its subjects. */
  readonly timeline: readonly string[];
}

export interface SimResult {
  readonly seed: number;
  readonly nodes: number;
  readonly zones: number;
  readonly policy: Partial<Policy>;
  readonly parts: readonly PartName[];
  readonly nodeHours: number;
  readonly steps: number;
  readonly faults: Readonly<Record<FaultName, number>>;
  readonly marks: Readonly<Record<Mark, number>>;
  readonly failure: SimFailure | undefined;
}
