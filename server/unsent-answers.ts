/**
 * Answers that their clients have not accepted as a whole. They are in memory until then, so their bytes have a bound,
 * and a client has a bound of time: one that reads a little before each timeout would hold them as long as it likes.
 */
import type { Http2ServerResponse } from 'node:http2';
import { breakOff } from '../shared/host/http-response.ts';
import { quarterShares } from './quarter-shares.ts';

/** One address has a quarter of it. */
const ALL_ANSWERS_BYTES_MAX = 256 * 1024 * 1024;
/** A longer answer counts as one of this length: it must be possible. */
const COUNTED_BYTES_MAX = ALL_ANSWERS_BYTES_MAX / 4;
/** Smaller answers are not counted: a client that reads nothing must not end the heartbeats of those behind its NAT. */
const SMALL_ANSWER_BYTES = 8 * 1024;
/**
 * Time for any answer, and the least rate for the rest of a longer one. Below what a phone has on 2G, 5 KB/s: an answer
 * of less than a million characters is not compressed, and a client that is cut would ask for it again and again.
 */
const GRACE_MS = 30_000;
const BYTES_PER_MS_MIN = 4;
const LOOK_MS = 5_000;

export interface UnsentAnswers {
  /** Counts an answer until its response closes. @returns false when its address, or all together, have too many */
  hold(response: Http2ServerResponse, address: string, bytes: number): boolean;
  stop(): void;
}

/** @param onCut an answer took too long, and was broken off */
export function unsentAnswers(onCut: () => void): UnsentAnswers {
  const shares = quarterShares(ALL_ANSWERS_BYTES_MAX);
  const dueMs = new Map<Http2ServerResponse, number>();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    for (const [response, due] of dueMs) {
      if (nowMs < due) continue;
      onCut();
      breakOff(response);
    }
  }, LOOK_MS);
  timer.unref();
  return {
    hold(response, address, bytes) {
      const counted = bytes < SMALL_ANSWER_BYTES ? 0 : Math.min(bytes, COUNTED_BYTES_MAX);
      if (counted > 0 && shares.use(address, counted) !== 'used') return false;
      dueMs.set(response, performance.now() + GRACE_MS + bytes / BYTES_PER_MS_MIN);
      response.once('close', () => {
        dueMs.delete(response);
        if (counted > 0) shares.free(address, counted);
      });
      return true;
    },
    stop: () => clearInterval(timer),
  };
}
