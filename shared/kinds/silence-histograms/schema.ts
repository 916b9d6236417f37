import { embedded, int64, kindStruct, list, type StructSchema, struct, text, time } from '../../kubernetes/schema.ts';
import { IDENTITY_GROUP } from '../identities/resource.ts';
import { metadata } from '../upstream.ts';

const OURS = 'dev.nodekeeper.v1alpha1';

const bucket = struct(`${OURS}.SilenceBucket`, 'Silences of one length.', {
  upToMilliseconds: int64('The longest silence that the bucket holds. Buckets are 2.5 s wide up to 120 s.'),
  silences: int64('Silences in it.'),
});

export const silenceHistogram: StructSchema = kindStruct(
  `${OURS}.SilenceHistogram`,
  { group: IDENTITY_GROUP, version: 'v1alpha1', kind: 'SilenceHistogram' },
  'How long live machines were silent, as one process of node-monitor saw it in one hour. No client writes it.',
  {
    metadata,
    spec: embedded(
      struct(`${OURS}.SilenceHistogramSpec`, 'Counts of the hour.', {
        hour: time('Start of the hour.'),
        zone: text('Zone of the nodes; empty for nodes without zone and region labels.'),
        profile: text('Profile of the nodes.'),
        observedSeconds: int64('Time for which every tick was seen. Seconds.'),
        nodeSeconds: int64('Sum over the live nodes of the time for which they were seen. Seconds.'),
        nodes: int64('The most live nodes at one tick.'),
        beatIntervalSeconds: int64('Heartbeat interval. Seconds; shorter silences are not counted.'),
        graceSeconds: int64('Grace period in force. Seconds; a longer silence ended after a mark.'),
        periodSeconds: int64('Time between ticks. Seconds.'),
        buckets: list(bucket, 'Silences that ended in the hour, by length. Empty buckets are absent.'),
        uncounted: int64('Late nodes that were not remembered, because there were too many.'),
      }),
      'Counts of the hour.',
    ),
  },
);
