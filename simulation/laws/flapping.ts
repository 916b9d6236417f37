/**
 * Flapping follows from the marks of a node (shared/fleet/silences/flapping.ts):
 *   - It begins only after as many marks as the policy asks for, within the window.
 *   - It does not end before the stable time since the last mark is over, unless that mark is discounted.
 *   - Without faults, it begins and ends in time.
 */
import { partValidMs } from '../../shared/fleet/mark-parts.ts';
import { FLAPPING_TAINT_KEY } from '../../shared/fleet/silences/flapping.ts';
import { EFFECT_MS, effectMs, type Law, type LawContext, seconds } from './law.ts';
import { marksNodes, type TrueNode, type Writer } from './truth.ts';

/** Times of marks that are remembered per node. */
const MARKS_MAX = 20;
const FAULTS_MAX = 100;
/** The row stores whole seconds. */
const ROUNDED_MS = 1_000;

interface Flapping {
  /** When the invocations that wrote them began, oldest first: a mark has the time of its tick. Epoch milliseconds. */
  readonly marksMs: number[];
  /** By how much the tick of the last mark may be older: node-marker writes it later. Milliseconds. */
  lastWaitedMs: number;
  /** Marks that were made in total disruption, or after a fault of ours that its tick found. */
  readonly discountedMs: Set<number>;
}

export function flappingFollowsMarks(context: LawContext, hit: (mark: string) => void): Law {
  const { truth, nowMs, most, least, clockSlackMs, fail } = context;
  const known = new WeakMap<TrueNode, Flapping>();
  const flappingOf = (node: TrueNode): Flapping => {
    const found = known.get(node) ?? { marksMs: [], lastWaitedMs: 0, discountedMs: new Set() };
    known.set(node, found);
    return found;
  };
  const graceMs = (): number =>
    1_000 *
    most((policy) => Math.max(...[policy, ...policy.profiles].map((each) => each.nodeMonitorGracePeriodSeconds ?? 0)));
  const slackMs = (sinceMs: number): number => effectMs(context, sinceMs) + clockSlackMs(sinceMs) + ROUNDED_MS;

  /** Newest last. Epoch milliseconds. */
  const faultsMs: number[] = [];

  function discount(): void {
    faultsMs.push(nowMs());
    if (faultsMs.length > FAULTS_MAX) faultsMs.shift();
  }

  /**
   * Every mark of the grace period before a fault of ours may belong to it. The grace period is that of the policy now:
   * a longer one discounts more marks, also of earlier faults.
   */
  const isDiscounted = ({ discountedMs }: Flapping, markMs: number): boolean =>
    discountedMs.has(markMs) ||
    faultsMs.some((atMs) => markMs <= atMs && markMs >= atMs - graceMs() - slackMs(atMs - graceMs()));

  function mark(node: TrueNode, { name, sinceMs = nowMs() }: Writer): void {
    const flapping = flappingOf(node);
    const { marksMs, discountedMs } = flapping;
    marksMs.push(sinceMs);
    flapping.lastWaitedMs = name === 'node-marker' ? partValidMs(most((each) => each.nodeMonitorPeriodSeconds)) : 0;
    // The tick that finds the fault may write its marks later. They have the time of the tick.
    const faultAtMs = faultsMs.at(-1);
    const isOfFault = faultAtMs !== undefined && nowMs() - faultAtMs <= slackMs(faultAtMs);
    if (truth.total.isOn || isOfFault) discountedMs.add(sinceMs);
    if (marksMs.length > MARKS_MAX) marksMs.shift();
  }

  function begun(node: TrueNode): void {
    hit('flapping:begin');
    const { marksMs } = flappingOf(node);
    const threshold = least(({ flapThreshold }) => flapThreshold);
    const windowMs = 1_000 * most(({ flapWindowSeconds }) => flapWindowSeconds);
    const first = marksMs.at(-threshold);
    const last = marksMs.at(-1) ?? 0;
    if (threshold > 0 && first !== undefined && last - first <= windowMs + slackMs(first)) return;
    fail({ law: 'flapping', subjects: [node.name], message: `${node.name} flaps after ${marksMs.length} marks` });
  }

  function ended(node: TrueNode): void {
    hit('flapping:end');
    // A poisoned machine replaces all taints of its Node.
    if (context.isPoisoned(node.name)) return;
    const flapping = flappingOf(node);
    const last = flapping.marksMs.at(-1) ?? 0;
    const stableMs = 1_000 * least(({ flapStableSeconds }) => flapStableSeconds);
    if (isDiscounted(flapping, last) || nowMs() - last >= stableMs - flapping.lastWaitedMs - slackMs(last)) return;
    const message = `${node.name} stopped flapping ${seconds(nowMs() - last)} after its last mark`;
    fail({ law: 'flapping', subjects: [node.name], message });
  }

  function failIfOverdue(node: TrueNode, calmMs: number): void {
    if (context.isPoisoned(node.name)) return;
    const flapping = flappingOf(node);
    const { marksMs } = flapping;
    const last = marksMs.at(-1);
    if (last === undefined) return;
    const periodMs = 1_000 * most(({ nodeMonitorPeriodSeconds }) => nodeMonitorPeriodSeconds);
    const stableMs = 1_000 * most(({ flapStableSeconds }) => flapStableSeconds);
    // After a step of all clocks back, the stable time since the mark ends later by true time.
    const dueMs = Math.max(last + stableMs, calmMs) + 2 * periodMs + slackMs(last) + context.poisonSlackMs();
    const isFlapping = node.noSchedule.has(FLAPPING_TAINT_KEY);
    if (isFlapping && nowMs() > dueMs) {
      const message = `${node.name} still flaps ${seconds(nowMs() - last)} after its last mark`;
      fail({ law: 'flapping', subjects: [node.name], message, isLate: true });
    }
    const threshold = most(({ flapThreshold }) => flapThreshold);
    if (threshold === 0) return;
    const first = marksMs.at(-threshold);
    const windowMs = 1_000 * least(({ flapWindowSeconds }) => flapWindowSeconds);
    if (isFlapping || first === undefined || last - first > windowMs - slackMs(first)) return;
    if (marksMs.some((each) => each >= first && isDiscounted(flapping, each)) || truth.total.isOn) return;
    // After a fault, the gate opens when all probes of an interval were accepted. A grace period is longer than that.
    const begunMs = Math.max(last, calmMs + graceMs()) + 2 * periodMs + EFFECT_MS + context.poisonSlackMs();
    if (nowMs() <= begunMs || nowMs() >= last + stableMs - slackMs(last)) return;
    const message = `${node.name} does not flap ${seconds(nowMs() - last)} after mark ${marksMs.length}`;
    fail({ law: 'flapping', subjects: [node.name], message, isLate: true });
  }

  return {
    name: 'flapping',
    onHappened(happened, by) {
      if (happened.kind === 'ready' && happened.to === 'Unknown' && marksNodes(by.name)) mark(happened.node, by);
      if (happened.kind === 'flapping') (happened.isFlapping ? begun : ended)(happened.node);
      if (happened.kind !== 'control' || happened.change.key.sk !== 'state') return;
      const { newImage = {}, oldImage = {} } = happened.change;
      const isNew = (pattern: RegExp, attribute: string): boolean => {
        const timeIn = (image: typeof newImage): string | undefined => pattern.exec(String(image[attribute]))?.[1];
        return timeIn(newImage) !== timeIn(oldImage);
      };
      if (isNew(/"startedAtMs":(\d+)/, 'disruption') || isNew(/"pathFailedAtMs":(\d+)/, 'gate')) discount();
    },
    onMoment() {
      const calmMs = context.calmSinceMs();
      if (calmMs === undefined) return;
      for (const node of truth.nodes.values()) failIfOverdue(node, calmMs);
    },
  };
}
