/** A simulated machine renews its Lease, or creates it. */
import {
  answeredTiming,
  LEASES_PATH,
  type LeaseTiming,
  leasePath,
  newLease,
  renewedLease,
} from '../../agent/rules/lease.ts';
import { leaseRead, leaseWrite, RENEWAL_ATTEMPTS_MAX, renewedBy } from '../../agent/rules/lease-answers.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import {
  DONE,
  failed,
  forgetNode,
  type MachineContext,
  type MachineSettings,
  type MachineState,
  type Step,
} from './machine-state.ts';
import { readNode } from './status-report.ts';
import { usageAt } from './usage.ts';

type Ensured = Step & { readonly created?: boolean };

/** @param isStale whether the machine was silenced or started again since this turn began */
export async function renewLease(context: MachineContext, isStale: () => boolean): Promise<Step> {
  const { identity, state, send, counters } = context;
  const path = leasePath(identity.name);
  let last: Step = DONE;
  for (let attempt = 0; attempt < RENEWAL_ATTEMPTS_MAX; attempt += 1) {
    if (state.lease === undefined) {
      const ensured = await ensureLease(context);
      if (ensured.kind !== 'done' || ensured.created === true || state.lease === undefined) return ensured;
    }
    if (isStale()) return DONE;
    const body = renewedLease(state.lease, { ...renewalOf(context), node: state.owner });
    const answer = await send({ method: 'PUT', path, body, urgent: true, prefersMinimal: true });
    const written = leaseWrite(answer, identity.name);
    switch (written.kind) {
      case 'written':
        acknowledge(context, renewedBy(body, written.lease));
        return DONE;
      case 'failed':
        return failed(context, 'renewing the Lease', answer);
      case 'conflict':
        counters.conflicts += 1;
        break;
      case 'missing':
        // The Node may be missing too: it is read before the Lease is created.
        state.freshNode = undefined;
    }
    state.lease = undefined;
    last = failed(context, `renewing the Lease, ${RENEWAL_ATTEMPTS_MAX} tries`, answer);
  }
  return last;
}

/** Finds the Lease or creates it; a creation is a beat. */
async function ensureLease(context: MachineContext): Promise<Ensured> {
  const { identity, state, send } = context;
  const found = await send({ method: 'GET', path: leasePath(identity.name), urgent: true });
  const read = leaseRead(found, identity.name);
  if (read.kind === 'found') {
    state.lease = read.lease;
    return DONE;
  }
  if (read.kind === 'failed') return failed(context, 'reading the Lease', found);
  if (state.freshNode === undefined) {
    // The owner reference needs the current uid of the Node.
    const step = await readNode(context);
    if (step.kind !== 'done') return step;
  }
  if (state.owner === undefined) return forgetNode(context);
  const body = newLease(state.owner, renewalOf(context));
  const created = await send({ method: 'POST', path: LEASES_PATH, body, urgent: true });
  const written = leaseWrite(created, identity.name);
  if (written.kind === 'written') {
    acknowledge(context, written.lease);
    return { kind: 'done', created: true };
  }
  return written.kind === 'missing' ? forgetNode(context) : failed(context, 'creating the Lease', created);
}

const renewalOf = ({ settings, state, clock }: MachineContext) => ({
  leaseDurationSeconds: leaseTimingOf(settings, state).durationSeconds,
  nowMs: clock.nowMs(),
  usage: usageAt(state.use, state.startedAtMs, clock.nowMs()),
});

/** The times that the last answer asked for, or those of the settings. */
export const leaseTimingOf = (
  { beatIntervalSeconds, leaseDurationSeconds, followsProfile }: MachineSettings,
  { answered }: Pick<MachineState, 'answered'>,
): LeaseTiming =>
  (followsProfile ? answered : undefined) ?? {
    intervalMs: beatIntervalSeconds * 1_000,
    durationSeconds: leaseDurationSeconds,
  };

/** A beat after a gap may mean that the controller has marked the Node and its pods. The latter changes no version. */
function acknowledge({ state, settings, clock, counters }: MachineContext, lease: KubeObject): void {
  const nowMs = clock.nowMs();
  const gapMs = state.lastBeatAtMs === undefined ? 0 : nowMs - state.lastBeatAtMs;
  const isLate = gapMs > 2 * leaseTimingOf(settings, state).intervalMs;
  if (state.failures > 0 || isLate) state.mustLook = true;
  if (isLate) state.podsVersion = '';
  state.lease = lease;
  state.answered = answeredTiming(lease);
  state.lastBeatAtMs = nowMs;
  counters.beats += 1;
}
