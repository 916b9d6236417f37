/** The advice on the grace period in words. */
import type { GraceAdvice, GraceCandidate } from './advise-grace.ts';

/** Two significant digits, whole numbers from 100 on; "-" without a value. */
export const roundedText = (value: number): string =>
  !Number.isFinite(value) ? '-' : value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(2)));

/** The recommendation in one sentence, or why there is none. */
export function recommendation(advice: GraceAdvice, limit: number): string {
  const { recommended, candidates, graceSeconds, nodeDays, bestBoundPer1000NodeDays } = advice;
  const inForce = candidates.find((each) => each.graceSeconds === graceSeconds)!;
  if (nodeDays === 0) return 'Too little data: no live machine was observed.';
  if (bestBoundPer1000NodeDays > limit) {
    const days = (advice.days * bestBoundPer1000NodeDays) / limit;
    return `Too little data: ${roundedText(nodeDays)} node-days show at best a bound of ${roundedText(bestBoundPer1000NodeDays)} per 1,000 node-days. ${roundedText(days)} days of this fleet are needed for a bound of ${roundedText(limit)}.`;
  }
  if (recommended === undefined) {
    return `No grace period up to ${candidates.at(-1)!.graceSeconds} s stays within ${roundedText(limit)} false marks per 1,000 node-days: keep ${graceSeconds} s, and look for the cause of the silences.`;
  }
  const facts = `would have marked ${marksText(recommended, advice)} (bound ${roundedText(recommended.boundPer1000NodeDays)} per 1,000 node-days)`;
  if (recommended.graceSeconds === graceSeconds) return `Keep ${graceSeconds} s: it ${facts}.`;
  const change = recommended.graceSeconds < graceSeconds ? 'shortens' : 'lengthens';
  return `${recommended.graceSeconds} s ${facts} and ${change} detection from ${inForce.detectionP50Seconds} s to ${recommended.detectionP50Seconds} s.`;
}

const marksText = ({ falseMarks }: GraceCandidate, { nodes, days }: GraceAdvice): string =>
  falseMarks === 0
    ? `none of ${nodes} live machines in ${roundedText(days)} days`
    : `live machines ${falseMarks} times in ${roundedText(days)} days`;
