/** The read-only storage of SilenceHistograms: rows of one partition, in order of time. */

import type { KindStorage } from '../../api/kind-storage.ts';
import { type ResourceStorage, readOnlyStorage } from '../../api/resource-storage.ts';
import { uidOfName } from '../../api/uid-of-name.ts';
import type { Clock } from '../../clock.ts';
import { defined } from '../../defined.ts';
import type { SilenceHour } from '../../fleet/silences/silence-hour.ts';
import { type SilenceStore, silenceHourName, silenceStore } from '../../fleet/silences/silence-store.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import { silenceHistogramObject, silencehistograms } from './serve.ts';

function objectOf(hour: SilenceHour) {
  const name = silenceHourName(hour);
  return silenceHistogramObject(name, hour, {
    uid: uidOfName(name),
    version: String(hour.hourStartMs * RESOURCE_VERSIONS_PER_MS),
  });
}

export const silenceHistogramStorage = (silences: SilenceStore, clock: Clock): ResourceStorage =>
  readOnlyStorage({
    async get(_namespace, name) {
      const hour = await silences.get(name);
      return hour === undefined ? undefined : objectOf(hour);
    },
    async list({ limit, continueAfter }) {
      const page = await silences.list({ nowMs: clock.nowMs(), limit, ...defined({ after: continueAfter }) });
      return { items: page.hours.map(objectOf), ...defined({ next: page.next }) };
    },
    listVersion: async () => String(clock.nowMs() * RESOURCE_VERSIONS_PER_MS),
  });

export const silenceHistogramStorages: readonly KindStorage[] = [
  [silencehistograms, (_, { items, clock }) => silenceHistogramStorage(silenceStore(items), clock)],
];
