/** `nodekeeper-agent doctor`: whether this machine starts its pods without a network, as after a power cut. */
import type { AgentConfig } from '../config.ts';
import { type Finding, failed, ok, warning } from './finding.ts';
import { type OfflineImage, type OfflineReading, offlineImages } from './offline-start.ts';
import { NOT_REMEMBERED } from './remembered-state.ts';

export interface OfflineReadings {
  readonly offline: OfflineReading;
  /** Message of the Ready condition, as the running agent reported it; undefined: unknown, or no agent runs. */
  readonly readyMessage: string | undefined;
}

const REMEMBERED = 'remembered';
const IMAGES = 'offline-images';
const WRITE_AGAIN = 'Start the agent while the API answers: it then writes them again.';
/** Pods in one line. */
const NAMED_MAX = 10;

/** The runtime `none` runs no pods, and for `exec` no image is pulled. */
export function offlineFindings({ runtime }: Pick<AgentConfig, 'runtime'>, readings: OfflineReadings): Finding[] {
  const { offline, readyMessage } = readings;
  if (runtime === 'none') return [];
  const hasImages = runtime === 'podman' && offline.remembered.kind !== 'forbidden';
  return [remembered(offline, readyMessage), ...(hasImages ? images(offline) : [])];
}

function remembered({ remembered: read }: OfflineReading, readyMessage = ''): Finding {
  if (read.kind === 'off') return ok(REMEMBERED, 'off (rememberPods: none): only static pods start without the API');
  if (read.kind === 'forbidden') return failed(REMEMBERED, read.why, 'Run as root.');
  const complaintAt = readyMessage.indexOf(NOT_REMEMBERED);
  if (complaintAt >= 0) {
    const todo = 'Repair or free the disk of rootDirectory: until then, a restart without the API starts older pods.';
    return failed(REMEMBERED, readyMessage.slice(complaintAt), todo);
  }
  const { pods, refusals, isAnyUsable } = read;
  const why = refusals.join(', ');
  if (!isAnyUsable && why === '') return ok(REMEMBERED, 'no pods yet: the agent writes them when the API has answered');
  if (!isAnyUsable) return failed(REMEMBERED, `the pods on disk cannot be used: ${why}`, WRITE_AGAIN);
  if (why === '') return ok(REMEMBERED, `${pods.length} pods start without the API`);
  return warning(REMEMBERED, `the newest pods on disk cannot be used, older ones start: ${why}`, WRITE_AGAIN);
}

function images(reading: OfflineReading): Finding[] {
  const { images: read, staticFaults } = reading;
  if (read.kind === 'failed') {
    return [warning(IMAGES, `not checked: ${read.why}`, 'Repeat this when podman answers.')];
  }
  const needed = offlineImages(reading, read.here);
  const lacking = needed.filter(({ state }) => state !== 'here');
  const findings = staticFaults.map((fault) => warning(IMAGES, fault, 'Correct it: a static pod may not start.'));
  if (lacking.length > 0) return [...findings, warning(IMAGES, lackingText(lacking), imageTodo(lacking))];
  const message =
    needed.length === 0 ? 'no pod that starts without the API needs an image' : `all ${needed.length} are here`;
  return [...findings, ok(IMAGES, message)];
}

function lackingText(lacking: readonly OfflineImage[]): string {
  const uses = lacking.flatMap(({ image, state, pods }) =>
    pods.map((pod) => `${pod} (${image} is ${state === 'missing' ? 'missing' : 'always pulled'})`),
  );
  const more = uses.length > NAMED_MAX ? `, and ${uses.length - NAMED_MAX} more` : '';
  return `would not start without a network: ${uses.slice(0, NAMED_MAX).join(', ')}${more}`;
}

/** What to do about the images that a start without a network lacks. */
export function imageTodo(lacking: readonly OfflineImage[]): string {
  const isAny = (state: OfflineImage['state']): boolean => lacking.some((each) => each.state === state);
  return [
    ...(isAny('missing') ? ['Missing: podman pull IMAGE.'] : []),
    ...(isAny('alwaysPulled')
      ? ['Always pulled: set imagePullPolicy: IfNotPresent, and a tag other than latest.']
      : []),
  ].join(' ');
}
