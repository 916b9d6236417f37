/**
 * Evaluates recorded decisions again. The registry maps every rule id to the replay function of its controller.
 * A different outcome means that the record or the rule was changed.
 */

import { type CloudNodeDraft, cloudNodeReplay } from '../functions/cloud-node/decisions.ts';
import { type EvictorDraft, evictorReplay } from '../functions/evictor/decisions.ts';
import { type PodGcDraft, podGcReplay } from '../functions/pod-gc/decisions.ts';
import { type VolumeDetacherDraft, volumeDetacherReplay } from '../functions/pod-gc/volumes/decisions.ts';
import { type SchedulerDraft, schedulerReplay } from '../functions/scheduler/decisions.ts';
import { type CronJobDraft, cronJobReplay } from '../functions/workloads/cronjobs/decisions.ts';
import { type DaemonSetDraft, daemonSetReplay } from '../functions/workloads/daemonsets/decisions.ts';
import { type RolloutDraft, rolloutReplay } from '../functions/workloads/decisions.ts';
import { type DeploymentDraft, deploymentReplay } from '../functions/workloads/deployments/decisions.ts';
import { type CollectorDraft, collectorReplay } from '../functions/workloads/garbage-collector/decisions.ts';
import { type JobDraft, jobReplay } from '../functions/workloads/jobs/decisions.ts';
import { type ReplicaSetDraft, replicaSetReplay } from '../functions/workloads/replicasets/decisions.ts';
import { type StatefulSetDraft, statefulSetReplay } from '../functions/workloads/statefulsets/decisions.ts';
import { canonical, type DecisionRecord, type Outcome, sumOf } from '../shared/decisions/decision-record.ts';
import { type UnwrittenDraft, unwrittenReplay } from '../shared/decisions/unwritten.ts';
import { type PodEvictorDraft, podEvictorReplay } from '../shared/fleet/eviction-decisions.ts';
import { type NodeMonitorDraft, nodeMonitorReplay } from '../shared/fleet/mark-decisions.ts';
import { type NodeReconcilerDraft, nodeReconcilerReplay } from '../shared/fleet/nodes/taint-decisions.ts';

/** Every kind of decision, distinguished by `rule`. */
export type KnownDecision =
  | NodeMonitorDraft
  | EvictorDraft
  | NodeReconcilerDraft
  | PodEvictorDraft
  | PodGcDraft
  | CloudNodeDraft
  | VolumeDetacherDraft
  | SchedulerDraft
  | ReplicaSetDraft
  | DeploymentDraft
  | DaemonSetDraft
  | StatefulSetDraft
  | CollectorDraft
  | JobDraft
  | CronJobDraft
  | RolloutDraft
  | UnwrittenDraft;

type ReplayRule = (inputs: never, record: DecisionRecord) => Outcome;

/** Rule ids are stored in records: a rule keeps its id. */
const RULES: Readonly<Record<string, ReplayRule>> = {
  ...nodeMonitorReplay,
  ...evictorReplay,
  ...nodeReconcilerReplay,
  ...podEvictorReplay,
  ...podGcReplay,
  ...cloudNodeReplay,
  ...volumeDetacherReplay,
  ...schedulerReplay,
  ...replicaSetReplay,
  ...deploymentReplay,
  ...daemonSetReplay,
  ...statefulSetReplay,
  ...collectorReplay,
  ...jobReplay,
  ...cronJobReplay,
  ...rolloutReplay,
  ...unwrittenReplay,
};

export interface Replay {
  readonly same: boolean;
  /** False for a fact, which has no rule to run. */
  readonly checked: boolean;
  /** The recorded outcome. */
  readonly expected: Outcome;
  /** What the rule returns now. */
  readonly got: Outcome;
}

/** Evaluates the rule over the recorded inputs. Inputs that the rule cannot read are a difference, not an error. */
export function replay(record: DecisionRecord): Replay {
  const { rule, inputs, outcome: expected } = record;
  const checked = rule !== 'fact';
  const differs = (why: string): Replay => ({ same: false, checked, expected, got: { kind: 'unreadable', why } });
  if (record.sum !== sumOf(record)) return differs('the record was changed after it was written');
  if (record.v !== 1) return differs(`version ${String(record.v)} is not known`);
  const run = Object.hasOwn(RULES, rule) ? RULES[rule] : undefined;
  if (run === undefined) return differs(`rule ${String(rule)} is not known`);
  try {
    const got = run(inputs as never, record);
    return { same: canonical(withoutText(got)) === canonical(withoutText(expected)), checked, expected, got };
  } catch (fault) {
    return differs(fault instanceof Error ? fault.message : String(fault));
  }
}

/**
 * The outcome without its texts for people: versions of the controller word them differently, and nothing depends on
 * them. A changed text in a record shows in its sum. The rules of pods and of EC2 name the text `why`, that of volumes
 * `reason`.
 */
const withoutText = ({ why: _why, reason: _reason, ...outcome }: Outcome): object => outcome;
