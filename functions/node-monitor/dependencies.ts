import type { EventBus } from '../../shared/events/cluster-event.ts';
import type { PartQueue } from '../../shared/fleet/mark-parts.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import type { Waker } from '../../shared/ticks/tick.ts';
import type { TickQueue } from './chain.ts';
import type { Probe } from './probes.ts';
import { type ReturnWatch, returnWatch, type SilenceWatch, silenceWatch } from './silence-watch.ts';

export interface MonitorPorts {
  /** Sends node-monitor's own heartbeats. Absent: the safety gate does not check the heartbeat path. */
  readonly probe?: Probe;
  /** Receives cluster events. Absent: none are published. */
  readonly eventBus?: EventBus;
  /** Returns and resets the capacity units that the tables reported as consumed. Absent: no cost metric is emitted. */
  readonly takeUnits?: () => { readonly readUnits: number; readonly writeUnits: number };
  /** Receives the message of the next tick. Absent: ticks are started from outside. */
  readonly tickQueue?: TickQueue;
  /** Receives the parts of a mass failure for node-marker. Absent: ticks mark every node themselves. */
  readonly partQueue?: PartQueue;
  /** Waits for the end of a shortened grace period. Absent: the next tick marks its node. Milliseconds. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
  /** Starts the functions that have work. Absent: they are started from outside. */
  readonly waker?: Waker;
}

export interface MonitorDependencies extends WorkDependencies, MonitorPorts {
  /** Silences of live machines that ticks of this process have seen. */
  readonly silences: SilenceWatch;
  /** Nodes that return from a planned silence. */
  readonly returns: ReturnWatch;
}

export const monitorDependencies = (common: WorkDependencies, ports: MonitorPorts): MonitorDependencies => ({
  ...common,
  ...ports,
  silences: silenceWatch(),
  returns: returnWatch(),
});
