import { RemovalPolicy, Token } from 'aws-cdk-lib';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Policy } from '../../shared/fleet/policy.ts';
import { expectedNodes, fleetSize } from './capacity.ts';
import { type ConcurrencyProps, concurrencyFaults, MARK_CONCURRENCY_MAX, MARK_CONCURRENCY_MIN } from './concurrency.ts';
import type { ClusterNetwork } from './network.ts';

/** A custom domain name of the endpoint. */
export interface CustomDomain {
  /** Such as `nodes.example.com`. You create its DNS record, which points to the output `DomainTarget`. */
  readonly domainName: string;
  /** ARN of an ACM certificate for the name, in the Region of the stack. */
  readonly certificateArn: string;
}

/** Owner of the key that encrypts tables, queues and logs. */
export class Encryption {
  /** The keys of the AWS services, without a charge. */
  static awsManaged(): Encryption {
    return new Encryption(false, undefined);
  }

  /**
   * A key of your account.
   *
   * @param keyArn an existing key. Its policy must allow CloudWatch Logs to use it (docs/operations/deploy.md). Without
   * it the stack creates a key.
   */
  static customerManaged(keyArn?: string): Encryption {
    return new Encryption(true, keyArn);
  }

  readonly isCustomerManaged: boolean;
  readonly keyArn: string | undefined;

  private constructor(isCustomerManaged: boolean, keyArn: string | undefined) {
    this.isCustomerManaged = isCustomerManaged;
    this.keyArn = keyArn;
  }
}

/** The props with rules of their own. Policy and access entries are checked where they are read. */
export interface CheckedProps extends ConcurrencyProps {
  readonly clusterId?: string;
  readonly outputPrefix?: string;
  readonly network?: ClusterNetwork;
  readonly permissionsBoundaryArn?: string;
  readonly tags?: { readonly [name: string]: string };
  readonly logRetention?: RetentionDays;
  readonly requestsPerSecondMax?: number;
  readonly burstRequestsMax?: number;
  readonly accountRequestsPerSecondMax?: number;
  readonly customDomain?: CustomDomain;
  readonly encryption?: Encryption;
  readonly pointInTimeRecoveryDays?: number;
  readonly removalPolicy?: RemovalPolicy;
  readonly restoredTables?: unknown;
  readonly restoredTablesFile?: string;
  readonly alarmTopicArn?: string;
  readonly alarmEmail?: string;
}

export interface PropFault {
  /** Path of the prop, such as `customDomain.domainName`, or the name of the context value. */
  readonly prop: string;
  readonly value: unknown;
  readonly rule: string;
}

/** The props cannot be deployed. `message` has one line per fault: `prop value rule`. */
export class InvalidPropsError extends Error {
  override readonly name = 'InvalidPropsError';
  readonly code = 'props-invalid';
  readonly faults: readonly PropFault[];
  constructor(faults: readonly PropFault[]) {
    super(faults.map(({ prop, value, rule }) => `${prop} ${JSON.stringify(value) ?? 'undefined'} ${rule}`).join('\n'));
    this.faults = faults;
  }
}

export const CLUSTER_ID_DEFAULT = 'nodekeeper';
/** DynamoDB's maximum and default. */
const RECOVERY_DAYS_MAX = 35;
const NODES_MAX = 1_000_000;
/** For registrations and users of a small fleet. */
const REQUESTS_PER_SECOND_MIN = 100;
/**
 * Requests per second of all APIs of an account and Region. Some Regions have 2,500.
 * Source: API Gateway Developer Guide, "Quotas for configuring and running an HTTP API".
 */
const ACCOUNT_REQUESTS_PER_SECOND = 10_000;
/** A whole fleet may recover at once, and it posts status as well. */
const REQUESTS_OVER_BEATS = 2;

/** All retention periods that CloudWatch Logs supports. */
export const RETENTION_DAYS = Object.values(RetentionDays).filter(
  (days): days is RetentionDays => typeof days === 'number' && days !== RetentionDays.INFINITE,
);

const CLUSTER_ID = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const DOMAIN_NAME = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/;
const CERTIFICATE_ARN = /^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate\/[0-9a-f-]{36}$/;
const TOPIC_ARN = /^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$/;
const POLICY_ARN = /^arn:aws[a-z-]*:iam::(\d{12}|aws):policy\/[\w+=,.@/-]{1,512}$/;
const SUBNET_ID = /^subnet-[0-9a-f]{8,17}$/;
const SECURITY_GROUP_ID = /^sg-[0-9a-f]{8,17}$/;
const TAGS_MAX = 50;
const EMAIL = /^[^\s@]{1,64}@[^\s@]+\.[^\s@]+$/;
const KEY_ARN = /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/[A-Za-z0-9-]{1,128}$/;

export interface RequestLimits {
  readonly requestsPerSecondMax: number;
  readonly burstRequestsMax: number;
}

/**
 * Request limits of the HTTP API: as configured, or twice the heartbeats of the fleet. They also bound what anonymous
 * requests may cost (docs/cost.md).
 */
export function requestLimits(props: CheckedProps, policy: Policy): RequestLimits {
  const beatsPerSecond = fleetSize(props) / policy.beatIntervalSeconds;
  const requestsPerSecondMax =
    props.requestsPerSecondMax ?? Math.max(REQUESTS_PER_SECOND_MIN, Math.ceil(beatsPerSecond * REQUESTS_OVER_BEATS));
  return { requestsPerSecondMax, burstRequestsMax: props.burstRequestsMax ?? requestsPerSecondMax * 2 };
}

/** @throws InvalidPropsError with every fault */
export function requireProps(props: CheckedProps, policy: Policy): void {
  const faults = propFaults(props, policy);
  if (faults.length > 0) throw new InvalidPropsError(faults);
}

function propFaults(props: CheckedProps, policy: Policy): readonly PropFault[] {
  const faults: PropFault[] = [];
  const check = (prop: string, value: unknown, isRight: boolean, rule: string): void => {
    if (value === undefined || Token.isUnresolved(value) || isRight) return;
    faults.push({ prop, value, rule });
  };
  const whole = (prop: string, value: number | undefined, from: number, to: number): void =>
    check(
      prop,
      value,
      Number.isInteger(value) && (value as number) >= from && (value as number) <= to,
      `must be a whole number from ${from} to ${to}`,
    );
  const text = (prop: string, value: string | undefined, pattern: RegExp, rule: string): void =>
    check(prop, value, pattern.test(value ?? ''), rule);

  text('clusterId', props.clusterId, CLUSTER_ID, 'must be lower-case letters, digits and dashes, 63 at most');
  text('outputPrefix', props.outputPrefix, /^[A-Za-z0-9]{0,100}$/, 'must be letters and digits, 100 at most');
  check(
    'logRetention',
    props.logRetention,
    RETENTION_DAYS.includes(props.logRetention as RetentionDays),
    `must be a retention period of CloudWatch Logs: ${RETENTION_DAYS.join(', ')}`,
  );
  whole('pointInTimeRecoveryDays', props.pointInTimeRecoveryDays, 0, RECOVERY_DAYS_MAX);
  const { capacity, customDomain, encryption } = props;
  whole(capacity?.isProvisioned ? 'capacity.nodes' : 'capacity.warmForNodes', capacity?.nodes, 1, NODES_MAX);
  text(
    'customDomain.domainName',
    customDomain?.domainName,
    DOMAIN_NAME,
    'must be a DNS name in lower case, such as nodes.example.com',
  );
  text(
    'customDomain.certificateArn',
    customDomain?.certificateArn,
    CERTIFICATE_ARN,
    'must be the ARN of an ACM certificate',
  );
  text('encryption.keyArn', encryption?.keyArn, KEY_ARN, 'must be the ARN of a KMS key, not of an alias');
  text('permissionsBoundaryArn', props.permissionsBoundaryArn, POLICY_ARN, 'must be the ARN of an IAM policy');
  const ids = (prop: string, values: readonly string[] | undefined, pattern: RegExp, rule: string): void => {
    if (values === undefined || Token.isUnresolved(values)) return;
    if (values.length === 0) faults.push({ prop, value: values, rule: 'must not be empty' });
    for (const [index, value] of values.entries()) text(`${prop}[${index}]`, value, pattern, rule);
  };
  ids('network.subnetIds', props.network?.subnetIds, SUBNET_ID, 'must be the id of a subnet');
  ids(
    'network.securityGroupIds',
    props.network?.securityGroupIds,
    SECURITY_GROUP_ID,
    'must be the id of a security group',
  );
  if (policy.watchMode === 'stream') {
    check(
      'network',
      props.network,
      false,
      'requires the policy field watchMode: longPoll. Function URLs do not stream responses inside of a VPC, so watches ' +
        'would be silent until they end',
    );
  }
  for (const [name, value] of Object.entries(props.tags ?? {})) {
    check(
      `tags.${name}`,
      value,
      /^(?!aws:).{1,128}$/.test(name) && value.length <= 256,
      'breaks the rules of AWS for tags',
    );
  }
  whole('number of tags', Object.keys(props.tags ?? {}).length, 0, TAGS_MAX - 2);
  text('alarmTopicArn', props.alarmTopicArn, TOPIC_ARN, 'must be the ARN of an SNS topic that is not FIFO');
  text('alarmEmail', props.alarmEmail, EMAIL, 'must be an e-mail address');
  check('alarmEmail', props.alarmEmail, props.alarmTopicArn === undefined, 'cannot be combined with alarmTopicArn');
  check(
    'removalPolicy',
    props.removalPolicy,
    props.removalPolicy !== RemovalPolicy.DESTROY || (props.restoredTables ?? props.restoredTablesFile) === undefined,
    'cannot be combined with restored tables: a deletion of the stack deletes the tables from before the restore',
  );
  whole('nodesMax', props.nodesMax, 1, NODES_MAX);
  whole('requestsPerSecondMax', props.requestsPerSecondMax, 1, 1_000_000);
  whole('burstRequestsMax', props.burstRequestsMax, 1, 1_000_000);
  whole('accountConcurrency', props.accountConcurrency, 1, 1_000_000);
  whole('markConcurrencyMax', props.markConcurrencyMax, MARK_CONCURRENCY_MIN, MARK_CONCURRENCY_MAX);
  faults.push(...concurrencyFaults(props));
  whole('accountRequestsPerSecondMax', props.accountRequestsPerSecondMax, 1, 10_000_000);
  const nodes = props.nodesMax ?? expectedNodes(capacity);
  const beatsPerSecond = nodes / policy.beatIntervalSeconds;
  if (faults.length === 0) {
    check(
      'requestsPerSecondMax',
      props.requestsPerSecondMax,
      (props.requestsPerSecondMax ?? 0) >= beatsPerSecond,
      `must allow the ${Math.ceil(beatsPerSecond)} heartbeats per second of ${nodes} nodes`,
    );
    const { accountRequestsPerSecondMax = ACCOUNT_REQUESTS_PER_SECOND } = props;
    const { requestsPerSecondMax } = requestLimits(props, policy);
    check(
      'requestsPerSecondMax',
      requestsPerSecondMax,
      requestsPerSecondMax <= accountRequestsPerSecondMax,
      `is more than API Gateway accepts for the account and Region (${accountRequestsPerSecondMax}): request a higher ` +
        'quota first, then set accountRequestsPerSecondMax to it',
    );
  }
  return faults;
}
