import {
  atomicTextMap,
  bool,
  embedded,
  int32,
  int64,
  intOrString,
  keyedList,
  kindStruct,
  list,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  time,
} from '../../kubernetes/schema.ts';
import { IDENTITY_GROUP } from '../identities/resource.ts';
import { metadata, upstream } from '../upstream.ts';

const OURS = 'dev.nodekeeper.v1alpha1';

const artifact = struct(`${OURS}.AgentReleaseArtifact`, 'The file of the agent for one architecture.', {
  architecture: text('As in status.nodeInfo.architecture: amd64, arm64 … Empty: all without an artifact of their own.'),
  url: required(text('Where nodes download it: http or https.')),
  sha256: required(text('SHA-256 of the file, lower-case hex.')),
  signature: required(text('Ed25519 signature over version and digest, base64. Nodes know the public key.')),
  downgradeSignature: text('A signature that nodes with a newer version accept, too. Required by allowDowngrade.'),
  sizeBytes: int64('Size of the file.'),
});

const wave = struct(`${OURS}.AgentReleaseWave`, 'Nodes that update together.', {
  name: text('Shown in the status.'),
  nodeSelector: atomicTextMap('Labels of the nodes. Empty: every node that is in no earlier wave.'),
});

const spec = struct(`${OURS}.AgentReleaseSpec`, 'What is released, and in which order.', {
  version: required(text('Version of the agent, as `nodekeeper-agent --version` prints it.')),
  artifacts: required(list(artifact, 'Its files, one per architecture.')),
  waves: list(wave, 'Waves in order. The next one begins when the previous one is complete. Empty: all nodes at once.'),
  maxUnavailable: intOrString('Nodes that update or have failed at the same time: a count, or a share. Default: 1.'),
  paused: bool('No further node begins to update.'),
  allowDowngrade: bool('Nodes with a newer version install this one. Otherwise they are skipped.'),
});

const updating = struct(`${OURS}.AgentReleaseUpdatingNode`, 'A node that may update now.', {
  node: required(text('Its name.')),
  sha256: text('The artifact.'),
  since: pointer(time('When it was allowed.')),
});

const skipped = struct(`${OURS}.AgentReleaseSkippedNode`, 'A node that does not install the release.', {
  node: required(text('Its name.')),
  reason: text('Why.'),
});

const failed = struct(`${OURS}.AgentReleaseFailedNode`, 'A node that returned to its previous version.', {
  node: required(text('Its name.')),
  sha256: text('The artifact. The node does not try it again.'),
  message: text('Why; empty after the first 50 nodes.'),
  at: pointer(time('When it reported that.')),
});

const status = struct(`${OURS}.AgentReleaseStatus`, 'Progress. Set by the server.', {
  observedGeneration: int64('Generation of the spec that the counts are for.'),
  refreshedAt: pointer(time('When the nodes were last counted.')),
  nodes: pointer(int32('Nodes of the release.')),
  updated: pointer(int32('Nodes that run the version.')),
  skipped: pointer(int32('Nodes that do not install it: no artifact for their architecture, or a newer version.')),
  wave: pointer(int32('Index of the first wave that is not complete.')),
  conditions: keyedList(
    upstream.struct('meta/v1.Condition'),
    'NodesSkipped: whether nodes are skipped, which ones, and why.',
    {
      mergeKey: 'type',
    },
  ),
  skippedNodes: list(skipped, 'The first of the skipped nodes.'),
  updating: list(updating, 'Nodes that may update now.'),
  failed: list(failed, 'Nodes that returned to their previous version.'),
});

export const agentRelease: StructSchema = kindStruct(
  `${OURS}.AgentRelease`,
  { group: IDENTITY_GROUP, version: 'v1alpha1', kind: 'AgentRelease' },
  'A version of nodekeeper-agent that nodes install themselves, wave by wave.',
  { metadata, spec: required(embedded(spec, 'What is released.')), status: embedded(status, 'Progress.') },
);
