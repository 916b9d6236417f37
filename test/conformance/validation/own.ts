/** Constraints of the kinds of nodekeeper.dev (docs/agent.md, docs/security.md). */
import {
  at,
  type Constraint,
  duplicate,
  type Edits,
  type ExpectedCause,
  invalid,
  on,
  onUpdate,
  required,
  tooMany,
} from './constraint.ts';

const ARTIFACT = 'spec.artifacts[0]';
const SIGNATURE = `${'A'.repeat(86)}==`;
const SIGNATURE_TEXT = 'must be an Ed25519 signature: 64 bytes in base64';
const SHA_TEXT = 'must be a SHA-256 in lower-case hex';
const VERSION_TEXT = 'must be 1 to 63 letters, digits, dots, plus signs and hyphens';

export const releaseArtifact = {
  url: 'https://files.example/agent.mjs',
  sha256: 'a'.repeat(64),
  signature: SIGNATURE,
  sizeBytes: 1_000,
};

const artifact = (field: string, rule: string, value: unknown, cause: ExpectedCause, more: Edits = {}): Constraint =>
  on(`${ARTIFACT}.${field}`, rule, { ...more, [`${ARTIFACT}.${field}`]: value }, cause);

export const agentReleases: Constraint[] = [
  at('spec.version', '1 to 63 characters of a version', 'a/b', invalid(VERSION_TEXT)),
  onUpdate(
    'spec.version',
    'not older, unless allowDowngrade is true',
    { 'spec.version': '1.0.0' },
    invalid('must not be older than 2.0.0 unless spec.allowDowngrade is true'),
  ),
  at('spec.artifacts', 'at least one', [], required()),
  at(
    'spec.artifacts',
    'at most 16',
    Array.from({ length: 17 }, () => releaseArtifact),
    tooMany('must have at most 16 items'),
  ),
  on('spec.artifacts[1].architecture', 'unique', { 'spec.artifacts[1]': releaseArtifact }, duplicate()),
  artifact(
    'url',
    'http or https, at most 2048 characters',
    'ftp://x',
    invalid('must be an http or https URL of at most 2048 characters'),
  ),
  artifact('sha256', 'a SHA-256', 'abc', invalid(SHA_TEXT)),
  artifact('signature', 'an Ed25519 signature', 'abc', invalid(SIGNATURE_TEXT)),
  artifact('downgradeSignature', 'an Ed25519 signature', 'abc', invalid(SIGNATURE_TEXT)),
  artifact('downgradeSignature', 'set with allowDowngrade', undefined, required(), { 'spec.allowDowngrade': true }),
  artifact('sizeBytes', 'at most 64 MiB', 64 * 1_024 * 1_024 + 1, invalid('must be from 0 to 67108864')),
  artifact('sizeBytes', 'at least 0', -1, invalid('must be from 0 to 67108864')),
  at(
    'spec.waves',
    'at most 32',
    Array.from({ length: 33 }, () => ({})),
    tooMany('must have at most 32 items'),
  ),
  on(
    'spec.waves[0].nodeSelector',
    'has the form of labels',
    { 'spec.waves': [{ nodeSelector: { 'a b': 'c' } }] },
    invalid(),
  ),
  at('spec.maxUnavailable', 'a count or a percentage', 'half', invalid()),
  at('spec.maxUnavailable', 'at most 100%', '101%', invalid('must not be greater than 100%')),
  at('spec.maxUnavailable', 'greater than 0', 0, invalid('must be greater than 0')),
];

const nodeLabels: Constraint[] = [
  at('spec.nodeLabels', 'have the form of labels', { 'a b': 'c' }, invalid()),
  at(
    'spec.nodeLabels',
    'that a node may set',
    { 'node-restriction.kubernetes.io/a': 'b' },
    invalid('a node may not set this label on itself'),
  ),
  at(
    'spec.nodeLabels',
    'at most 64',
    Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`l${index}`, 'v'])),
    tooMany('must have at most 64 items'),
  ),
];

export const sitePolicies: Constraint[] = [
  at('spec.hub', 'set', '', required()),
  at('spec.nodes', 'at least one', [], required()),
  at(
    'spec.nodes',
    'at most 1,000',
    Array.from({ length: 1_001 }, (_, index) => `m-${index}`),
    tooMany('must have at most 1000 items'),
  ),
  on('spec.nodes[1]', 'once each', { 'spec.nodes': ['m1', 'm1'] }, duplicate()),
  at('spec.namespaces', 'at least one', [], required()),
];

export const bootstrapTokens: Constraint[] = [
  at(
    'metadata.name',
    '6 to 20 lower-case letters and digits',
    'a-b',
    invalid('must be 6 to 20 lower-case letters and digits'),
  ),
  at('spec.secretSha256', 'a SHA-256', 'abc', invalid(SHA_TEXT)),
  at('spec.expires', 'set', undefined, required()),
  at('spec.expires', 'in the future', '2020-01-01T00:00:00Z', invalid('must be in the future')),
  at('spec.expires', 'within 400 days', '2036-01-01T00:00:00Z', invalid('must be within 400 days')),
  at('spec.uses', 'at least 1', 0, invalid('must be from 1 to 100000')),
  at('spec.uses', 'at most 100,000', 100_001, invalid('must be from 1 to 100000')),
  at(
    'spec.nodeNamePattern',
    "characters of node names, '*' and '?'",
    'A b',
    invalid("must be characters of node names, '*' and '?', at most 253"),
  ),
  ...nodeLabels,
];
