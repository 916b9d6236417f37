/**
 * Measures which padding delivers a chunk through the function URL (stream-form.ts). The first watch that
 * finds no measurement of this deployment and day claims it, opens small streams at its own URL beside its own events,
 * and keeps the result for later watches.
 *
 * Cost: nothing without watches. A measurement is at most 4 executions of 2 s, 2 write units and 5 read units, once a
 * day.
 */

import type { Clock, RandomSource } from '../../shared/clock.ts';
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import {
  type Arrival,
  isMeasurementDue,
  leastForm,
  type MeasuredForm,
  PADDINGS,
  whitespace,
} from '../../shared/watches/stream-form.ts';
import { claimMeasurement, isMeasurement, keepForm } from '../../shared/watches/stream-form-store.ts';

const PROBE_PATH = '/nodekeeper/stream-probe';
const PROBE_CHUNK_BYTES = 200;
/** Until the chunk, and from it to the end: a front that holds it must not be helped by another write. Milliseconds. */
const LEAD_MS = 200;
const HOLD_MS = 1_800;
const ID = /^[0-9a-f-]{36}$/;

/** Opens a stream of the measurement, and reports when its chunk arrived. Never rejects. */
export type OpenProbe = (url: string) => Promise<Arrival>;

export interface Measuring {
  readonly items: ItemStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Absent: nothing is measured, and each watch uses the default form. */
  readonly openProbe?: OpenProbe;
  /** The deployment of the code that streams. */
  readonly deployment?: string;
}

/** Measures at the URL of this function and keeps the form. Never rejects. */
export type MeasureForm = (url: string) => Promise<void>;

/** undefined: no measurement is due. */
export function measurementDue(measuring: Measuring, stored: MeasuredForm | undefined): MeasureForm | undefined {
  const { openProbe, deployment = '', items, clock, random, log } = measuring;
  if (openProbe === undefined || !isMeasurementDue(stored, { deployment, nowMs: clock.nowMs() })) return undefined;
  return async (url) => {
    try {
      const id = random.uuid();
      if (!(await claimMeasurement(items, { id, nowMs: clock.nowMs() }))) return;
      const form = await leastForm((paddingBytes) => openProbe(`${url}${PROBE_PATH}?id=${id}&padding=${paddingBytes}`));
      if (form === undefined) {
        log.warn('the form of streams could not be measured: the next watch after ten minutes tries again');
        return;
      }
      if (form.kind === 'longPoll') log.warn('no padding delivers a chunk: watches are answered as long polls');
      await keepForm(items, { form, measuredMs: clock.nowMs(), deployment });
    } catch (error) {
      log.warn('the form of streams was not stored: the next watch after ten minutes tries again', { error });
    }
  };
}

/** The stream of a measurement. undefined: the request is none, or is not of the running measurement. */
export async function probeLines(
  { items, clock, pause }: Pick<Measuring, 'items' | 'clock' | 'pause'>,
  { method, path, query }: Pick<HttpRequest, 'method' | 'path' | 'query'>,
): Promise<AsyncIterable<string> | undefined> {
  if (method !== 'GET' || path !== PROBE_PATH) return undefined;
  const id = query.get('id') ?? '';
  const paddingBytes = PADDINGS.find((bytes) => String(bytes) === query.get('padding'));
  if (!ID.test(id) || paddingBytes === undefined) return undefined;
  if (!(await isMeasurement(items, { id, nowMs: clock.nowMs() }))) return undefined;
  return chunkAndPadding({ clock, pause }, paddingBytes);
}

/**
 * A watch sends white space, later a line, its padding, and nothing for a while. The line has the time of its write.
 */
async function* chunkAndPadding(
  { clock, pause }: Pick<Measuring, 'clock' | 'pause'>,
  paddingBytes: number,
): AsyncGenerator<string> {
  yield whitespace(Math.max(1, paddingBytes));
  await pause(LEAD_MS);
  yield `${JSON.stringify({ writtenMs: clock.nowMs() }).padEnd(PROBE_CHUNK_BYTES - 1)}\n`;
  if (paddingBytes > 0) yield whitespace(paddingBytes);
  await pause(HOLD_MS);
}
