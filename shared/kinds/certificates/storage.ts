import type { KindStorage } from '../../api/kind-storage.ts';
import { certificatesigningrequests } from './serve.ts';

/**
 * Counted from the last write. A machine may create requests, and on AWS nothing else deletes them. It is longer than
 * server/certificates lets a request wait, which deletes them with an event for watches.
 */
const REQUEST_TTL_SECONDS = 2 * 86_400;

export const certificateStorages: readonly KindStorage[] = [
  [
    certificatesigningrequests,
    (descriptor, { plain, clock }) =>
      plain(descriptor, { expiresAtSeconds: () => Math.ceil(clock.nowMs() / 1_000) + REQUEST_TTL_SECONDS }),
  ],
];
