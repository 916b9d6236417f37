/** The silences of live machines that node-monitor has counted, read-only (docs/advise.md). */

import { bucketEndSeconds, type SilenceHour } from '../../fleet/silences/silence-hour.ts';
import { nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { apiVersionOf } from '../../kubernetes/normal-form.ts';
import { formatTime } from '../../kubernetes/time.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { READ_ONLY } from '../read-only.ts';
import type { KubeSilenceHistogram } from '../types.ts';
import { SILENCE_HISTOGRAMS } from './resource.ts';

export const silencehistograms: ResourceDescriptor = {
  ...SILENCE_HISTOGRAMS,
  singular: 'silencehistogram',
  listKind: 'SilenceHistogramList',
  shortNames: [],
  categories: [],
  subresources: [],
  columns: [
    nameColumn,
    textColumn('Hour', 'Start of the hour.'),
    textColumn('Zone', 'Zone of the nodes.'),
    textColumn('Profile', 'Profile of the nodes.'),
    textColumn('Nodes', 'The most live nodes at one tick.'),
    textColumn('Observed', 'Share of the hour in which every tick was seen.'),
    textColumn('Silences', 'Silences longer than one heartbeat interval.'),
    textColumn('Longest', 'Upper end of the longest one.'),
  ],
  row: ({ metadata, spec = {} }: KubeSilenceHistogram) => [
    metadata.name ?? '',
    spec.hour ?? '',
    spec.zone ?? '',
    spec.profile ?? '',
    String(spec.nodes ?? 0),
    `${Math.round((spec.observedSeconds ?? 0) / 36)}%`,
    String((spec.buckets ?? []).reduce((sum, { silences }) => sum + silences, 0)),
    `${(spec.buckets?.at(-1)?.upToMilliseconds ?? 0) / 1_000}s`,
  ],
  ...READ_ONLY,
};

export function silenceHistogramObject(
  name: string,
  { hourStartMs, counts, slot: _, ...hour }: SilenceHour,
  { uid, version }: { readonly uid: string; readonly version: string },
): KubeSilenceHistogram {
  return {
    apiVersion: apiVersionOf(SILENCE_HISTOGRAMS),
    kind: silencehistograms.kind,
    metadata: { name, uid, resourceVersion: version, creationTimestamp: formatTime(hourStartMs) },
    spec: {
      hour: formatTime(hourStartMs),
      ...hour,
      observedSeconds: Math.round(hour.observedSeconds),
      nodeSeconds: Math.round(hour.nodeSeconds),
      buckets: counts.map(([bucket, silences]) => ({ upToMilliseconds: bucketEndSeconds(bucket) * 1_000, silences })),
    },
  };
}
