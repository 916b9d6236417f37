/**
 * Maps AWS identities to users of this cluster: IAM ARNs of roles and users, each with a user name and groups. The
 * entries are set at deployment. An identity without an entry is not authenticated.
 *
 * Source: EKS User Guide, "Grant IAM users access to Kubernetes with EKS access entries"; aws-iam-authenticator pkg/arn
 * for the canonical form: the ARN of a role session becomes the ARN of the role. Paths are removed, because STS does
 * not return them.
 */
import { NODES_GROUP } from './authorize.ts';
import { PROBE_GROUP } from './probe-identity.ts';

export interface AccessEntry {
  /** `arn:aws:iam::<account>:role/<name>` or `…:user/<name>`, with or without a path. */
  readonly arn: string;
  /** `{{SessionName}}` and `{{AccountID}}` are filled in. Absent: the ARN as STS returns it. */
  readonly username?: string;
  readonly groups: string[];
}

export interface CallerIdentity {
  /** The ARN that STS returns, sessions included. */
  readonly arn: string;
  readonly accountId: string;
  /** Unique id of the user or role; for a role followed by `:` and the session name. */
  readonly userId: string;
}

export interface MappedUser {
  readonly username: string;
  readonly groups: readonly string[];
}

const IAM_ARN = /^arn:(aws|aws-cn|aws-us-gov):iam::(\d{12}):(role|user)\/(?:[\x21-\x7e]+\/)?([\w+=,.@-]{1,64})$/;
const ASSUMED_ROLE_ARN =
  /^arn:(aws|aws-cn|aws-us-gov):sts::(\d{12}):assumed-role\/([\w+=,.@-]{1,64})\/([\w+=,.@-]{2,64})$/;
const TEMPLATE = /\{\{(\w+)\}\}/g;
/** Group of the simulated machines in local mode. The audit log has no line for their requests. */
export const SIMULATED_FLEET_GROUP = 'nodekeeper:simulated-fleet';
/** Groups of no person: nodes, bootstrap tokens and probes sign in with their own credentials. */
export const RESERVED_GROUPS = new Set([NODES_GROUP, 'system:bootstrappers', PROBE_GROUP, SIMULATED_FLEET_GROUP]);
const GROUPS_MAX = 10;

/**
 * The ARN of the role or user of a caller, without its path. Undefined for other callers, such as the root user and
 * federated users.
 */
export function canonicalArn(arn: string): string | undefined {
  const session = ASSUMED_ROLE_ARN.exec(arn);
  if (session !== null) return `arn:${session[1]}:iam::${session[2]}:role/${session[3]}`;
  const iam = IAM_ARN.exec(arn);
  return iam === null ? undefined : `arn:${iam[1]}:iam::${iam[2]}:${iam[3]}/${iam[4]}`;
}

/** The faults of an entry by field, empty for a valid entry. */
export function accessEntryFaults(entry: AccessEntry): { readonly field: string; readonly rule: string }[] {
  const faults: { field: string; rule: string }[] = [];
  if (!IAM_ARN.test(entry.arn)) {
    faults.push({ field: 'arn', rule: 'must be the ARN of an IAM role or user: arn:aws:iam::123456789012:role/NAME' });
  }
  if (entry.username !== undefined) {
    const unknown = [...entry.username.matchAll(TEMPLATE)].find(
      ([, name]) => name !== 'SessionName' && name !== 'AccountID',
    );
    if (unknown !== undefined)
      faults.push({ field: 'username', rule: 'may hold {{SessionName}} and {{AccountID}} only' });
    if (entry.username.startsWith('system:')) {
      faults.push({ field: 'username', rule: 'must not begin with system:, which is for the cluster itself' });
    }
    if (entry.username === '') faults.push({ field: 'username', rule: 'must not be empty' });
  }
  if (entry.groups.length === 0 || entry.groups.length > GROUPS_MAX) {
    faults.push({ field: 'groups', rule: `must name 1 to ${GROUPS_MAX} groups` });
  }
  for (const group of entry.groups) {
    if (group === '' || RESERVED_GROUPS.has(group)) {
      faults.push({ field: 'groups', rule: `must not hold ${JSON.stringify(group)}` });
    }
  }
  return faults;
}

/** The user of the first entry with the ARN of this identity. Undefined without such an entry. */
export function mapIdentity(identity: CallerIdentity, entries: readonly AccessEntry[]): MappedUser | undefined {
  const arn = canonicalArn(identity.arn);
  const entry = arn === undefined ? undefined : entries.find((each) => canonicalArn(each.arn) === arn);
  if (entry === undefined) return undefined;
  const sessionName = ASSUMED_ROLE_ARN.exec(identity.arn)?.[4] ?? '';
  const values: Readonly<Record<string, string>> = { SessionName: sessionName, AccountID: identity.accountId };
  const username = (entry.username ?? identity.arn).replace(TEMPLATE, (_, name: string) => values[name] ?? '');
  return { username, groups: entry.groups };
}
