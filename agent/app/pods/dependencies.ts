/** The dependencies of the pod loop. */
import type { KubePod } from '../../../shared/kinds/types.ts';
import type { Log } from '../../../shared/observability/log.ts';
import type { KubeApi } from '../../ports/kube-api.ts';
import type { AgentMeter } from '../../ports/meter.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import type { AgentTime, Fraction } from '../../ports/time.ts';
import type { NodeEvent } from '../../rules/node-event.ts';
import type { Admission } from '../../rules/pod-admission.ts';
import type { AnsweredHeartbeats } from '../answered-heartbeats.ts';
import type { SitePermits } from '../site-permits.ts';
import type { PodInputs } from './pod-inputs.ts';
import type { PodProbes } from './pod-probes.ts';

export interface PodLoopDependencies {
  readonly nodeName: string;
  readonly api: KubeApi;
  readonly runtime: PodRuntime;
  readonly probes: Pick<PodProbes, 'update' | 'readinessOf' | 'remove' | 'onResult' | 'stop'>;
  readonly inputs: Pick<PodInputs, 'prepare' | 'changed' | 'remove' | 'keepOnly'>;
  readonly heartbeats: AnsweredHeartbeats;
  /** Of the hub of the site. Absent: there is none. */
  readonly permits?: SitePermits | undefined;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  readonly meter: AgentMeter;
  /** Reads the static pods of this machine. Absent: it has none. */
  readonly staticPods?: (() => readonly KubePod[]) | undefined;
  /** Keeps the pods of this machine for a start without the API. Absent: they are not kept. */
  readonly memory?:
    | {
        /** The pods that ran before this agent started. */
        readonly remembered: readonly KubePod[];
        /** These run now. Resolves when they are on disk, or cannot be written. Never rejects. */
        readonly save: (pods: readonly KubePod[]) => Promise<void>;
      }
    | undefined;
  /** Undefined before the registration. */
  readonly nodeUid?: () => string | undefined;
  /** In Go's spelling, such as `linux`. */
  readonly operatingSystem: string;
  /** Address of this machine; pods share it. */
  readonly hostIp: () => string | undefined;
  readonly recordEvent: (pod: KubePod, event: NodeEvent) => void;
  /** The first check of a new pod: a shutdown or a pressure of the node rejects it. */
  readonly gate: (pod: KubePod) => Admission;
  /** The last check, because admitting a pod assigns resources to it. */
  readonly topology: {
    admit(pod: KubePod): Admission;
    release(podUid: string): void;
    /** Whether it assigns any. Absent: it does not. */
    readonly assignsProcessors?: boolean;
  };
  /** Containers of Burstable pods may use swap. Absent: none may. */
  readonly maySwap?: boolean;
}
