/** AgentRelease. Limits keep the object, and what a node downloads, small. */
import { isOlderVersion } from '../../agents/version-order.ts';
import { duplicate, invalidValue, required, tooMany } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { subdomainName, validateLabels, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { AgentReleaseArtifactSpec, KubeAgentRelease } from '../types.ts';
import { validateShare } from '../validate-workloads.ts';

/** The agent refuses a larger file. */
export const ARTIFACT_BYTES_MAX = 64 * 1_024 * 1_024;
const ARTIFACTS_MAX = 16;
const WAVES_MAX = 32;
const URL_CHARACTERS_MAX = 2_048;
/** 64 bytes. */
const SIGNATURE = /^[A-Za-z0-9+/]{86}==$/;
const SIGNATURE_FORM = 'must be an Ed25519 signature: 64 bytes in base64';
/** A file name has the version. */
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,62}$/;

export function validateAgentRelease(release: KubeAgentRelease, old: KubeAgentRelease | undefined): Cause[] {
  const causes = validateObjectMetadata(release, old, { namespaced: false, name: subdomainName });
  const { version = '', artifacts = [], waves = [], maxUnavailable, allowDowngrade = false } = release.spec ?? {};
  if (!VERSION.test(version)) {
    causes.push(invalidValue('spec.version', version, 'must be 1 to 63 letters, digits, dots, plus signs and hyphens'));
  }
  const before = old?.spec?.version ?? version;
  if (!allowDowngrade && isOlderVersion(version, before)) {
    const why = `must not be older than ${before} unless spec.allowDowngrade is true`;
    causes.push(invalidValue('spec.version', version, why));
  }
  if (artifacts.length === 0) causes.push(required('spec.artifacts'));
  if (artifacts.length > ARTIFACTS_MAX) causes.push(tooMany('spec.artifacts', artifacts.length, ARTIFACTS_MAX));
  else {
    const seen = new Set<string>();
    for (const [index, artifact] of artifacts.entries()) {
      const field = `spec.artifacts[${index}]`;
      const { architecture = '' } = artifact;
      if (seen.has(architecture)) causes.push(duplicate(`${field}.architecture`, architecture));
      seen.add(architecture);
      causes.push(...validateArtifact(artifact, field, allowDowngrade));
    }
  }
  if (waves.length > WAVES_MAX) causes.push(tooMany('spec.waves', waves.length, WAVES_MAX));
  else {
    for (const [index, { nodeSelector }] of waves.entries()) {
      causes.push(...validateLabels(nodeSelector, `spec.waves[${index}].nodeSelector`));
    }
  }
  causes.push(...validateShare('spec.maxUnavailable', maxUnavailable));
  if (maxUnavailable === 0 || maxUnavailable === '0%') {
    causes.push(invalidValue('spec.maxUnavailable', maxUnavailable, 'must be greater than 0'));
  }
  return causes;
}

function validateArtifact(artifact: AgentReleaseArtifactSpec, field: string, allowDowngrade: boolean): Cause[] {
  const { url = '', sha256 = '', signature = '', downgradeSignature = '', sizeBytes = 0 } = artifact;
  const causes: Cause[] = [];
  if (!/^https?:\/\/[^/\s]+/.test(url) || !URL.canParse(url) || url.length > URL_CHARACTERS_MAX) {
    const why = `must be an http or https URL of at most ${URL_CHARACTERS_MAX} characters`;
    causes.push(invalidValue(`${field}.url`, url, why));
  }
  if (!/^[0-9a-f]{64}$/.test(sha256)) {
    causes.push(invalidValue(`${field}.sha256`, sha256, 'must be a SHA-256 in lower-case hex'));
  }
  if (!SIGNATURE.test(signature)) causes.push(invalidValue(`${field}.signature`, signature, SIGNATURE_FORM));
  if (downgradeSignature === '') {
    if (allowDowngrade) causes.push(required(`${field}.downgradeSignature`));
  } else if (!SIGNATURE.test(downgradeSignature)) {
    causes.push(invalidValue(`${field}.downgradeSignature`, downgradeSignature, SIGNATURE_FORM));
  }
  if (sizeBytes < 0 || sizeBytes > ARTIFACT_BYTES_MAX) {
    causes.push(invalidValue(`${field}.sizeBytes`, sizeBytes, `must be from 0 to ${ARTIFACT_BYTES_MAX}`));
  }
  return causes;
}
