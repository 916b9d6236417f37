/** The cluster's answer to the enrolment of this machine. It is kept, so a restart needs no bootstrap token. */
import { join } from 'node:path';
import { isRecord } from '../../../shared/kubernetes/normal-form.ts';
import { replaceFile, textOf } from '../system/state-file.ts';

export interface Enrolment {
  readonly clusterId: string;
  readonly nodeName: string;
  readonly keyId: string;
  /** Id of the bootstrap token that was used. Its secret is not kept. */
  readonly bootstrapTokenId: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

const FILE = 'node-identity.json';
const OWNER_ONLY = 0o600;

/** Undefined if there is none, or if it is malformed: enrolling the same key again is harmless. */
export async function readEnrolment(rootDirectory: string): Promise<Enrolment | undefined> {
  const text = await textOf(join(rootDirectory, FILE));
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isEnrolment(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// Checked without a schema library, which would be half of the agent's bundle.
const isEnrolment = (value: unknown): value is Enrolment =>
  isRecord(value) &&
  [value['clusterId'], value['nodeName'], value['keyId'], value['bootstrapTokenId']].every(
    (each) => typeof each === 'string',
  ) &&
  isRecord(value['nodeLabels']) &&
  Object.values(value['nodeLabels']).every((label) => typeof label === 'string');

export const writeEnrolment = (rootDirectory: string, enrolment: Enrolment): Promise<void> =>
  replaceFile(join(rootDirectory, FILE), `${FILE}.new`, `${JSON.stringify(enrolment, undefined, 2)}\n`, OWNER_ONLY);
