import {
  bool,
  embedded,
  int64,
  kindStruct,
  list,
  pointer,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema.ts';
import { IDENTITY_GROUP } from '../identities/resource.ts';
import { metadata } from '../upstream.ts';

const OURS = 'dev.nodekeeper.v1alpha1';

const gate = struct(`${OURS}.ClusterGate`, 'The safety gate.', {
  state: text('Open or Closed. While it is closed, no node is newly marked, tainted or evicted.'),
  reasons: list(text(''), 'Why it is closed: missedTicks, failingPath.'),
  since: pointer(time('Its last transition; for missed ticks, the last finished tick.')),
});

const heartbeats = struct(`${OURS}.ProfileHeartbeats`, 'Heartbeats of the nodes with a profile.', {
  profile: text('Name of the profile; default: nodes without another one.'),
  intervalSeconds: int64('Time between two heartbeats of a node. Seconds.'),
  graceSeconds: int64('Silence after which a node is marked. Seconds.'),
});

const watches = struct(`${OURS}.WatchForm`, 'How watches are sent, as measured at the function URL.', {
  form: text('Stream, or LongPoll where no padding makes the function URL deliver a change at once.'),
  paddingBytes: pointer(int64('White space after the changes of a stream. Bytes.')),
  measuredTime: time('When it was measured.'),
});

export const clusterStatus: StructSchema = kindStruct(
  `${OURS}.ClusterStatus`,
  { group: IDENTITY_GROUP, version: 'v1alpha1', kind: 'ClusterStatus' },
  'What node-monitor stored at its last tick. There is one object, cluster. No client writes it.',
  {
    metadata,
    status: embedded(
      struct(`${OURS}.ClusterStatusStatus`, 'State at the last tick.', {
        lastTickTime: text('Start of the last finished tick of node-monitor, RFC 3339; absent before the first.'),
        ticks: int64('Ticks so far.'),
        nodes: pointer(int64('Nodes that the last tick saw; absent before the first.')),
        gate: embedded(gate, 'The safety gate.'),
        totalDisruption: bool('Whether all zones are in full disruption: no pod is evicted.'),
        heartbeats: list(embedded(heartbeats, ''), 'Heartbeat intervals of the policy, by profile.'),
        watches: pointer(embedded(watches, 'How watches are sent; absent before the first watch.')),
      }),
      'State at the last tick.',
    ),
  },
);
