/** Metrics and the log line of marks, of a tick and of node-marker. */

import type { WorkDependencies } from '../ticks/dependencies.ts';
import * as metric from './mark-metrics.ts';
import type { MarkOutcome } from './mark-nodes.ts';

/** Node names in one log line. */
const LOGGED_NAMES_MAX = 10;

/** `sinceDecisionMs`: time from the decision to the mark. Milliseconds. */
export function reportMarks(
  { log, meter }: Pick<WorkDependencies, 'log' | 'meter'>,
  { marked, spared, left }: MarkOutcome,
  { sinceDecisionMs = 0 }: { readonly sinceDecisionMs?: number } = {},
): void {
  meter.add(metric.MARKED_NODES, marked.length, 'Count');
  const shortened = marked.filter(({ decision }) => decision.accusation?.shortens === true).length;
  if (shortened > 0) meter.add(metric.SHORTENED_MARKS, shortened, 'Count');
  if (marked.length > 0) {
    const silentSeconds = marked.map(({ decision }) => decision.silentSeconds);
    meter.add(metric.DETECTION_TIME, Math.max(...silentSeconds) + sinceDecisionMs / 1_000, 'Seconds');
  }
  log.info('silent nodes marked Unknown', {
    marked: marked.length,
    spared,
    left,
    nodes: marked.slice(0, LOGGED_NAMES_MAX).map(({ decision }) => ({
      nodeName: decision.nodeName,
      zone: decision.zone,
      silentSeconds: decision.silentSeconds,
      graceSeconds: decision.graceSeconds,
    })),
  });
}
