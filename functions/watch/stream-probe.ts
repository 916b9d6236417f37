import type { Clock } from '../../shared/clock.ts';
import { type Arrival, DELIVERED_MS } from '../../shared/watches/stream-form.ts';

/** A start of the function and the stream itself. Milliseconds. */
const TIMEOUT_MS = 10_000;
/** Padding before and after the line, and the line. Bytes. */
const RECEIVED_MAX = 300_000;

/** Reads the stream of a measurement (measure-form.ts) up to its line, which has the time of its write. */
export const streamProbe =
  ({ clock, fetch = globalThis.fetch }: { readonly clock: Clock; readonly fetch?: typeof globalThis.fetch }) =>
  async (url: string): Promise<Arrival> => {
    const ended = new AbortController();
    try {
      const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const response = await fetch(url, { signal, redirect: 'error' });
      if (response.status !== 200 || response.body === null) return 'failed';
      let text = '';
      for await (const chunk of response.body) {
        text += Buffer.from(chunk).toString('latin1');
        if (text.includes('\n')) break;
        if (text.length > RECEIVED_MAX) return 'failed';
      }
      const { writtenMs } = JSON.parse(text) as { writtenMs?: number };
      return clock.nowMs() - Number(writtenMs) <= DELIVERED_MS ? 'inTime' : 'late';
    } catch {
      return 'failed';
    } finally {
      ended.abort();
    }
  };
