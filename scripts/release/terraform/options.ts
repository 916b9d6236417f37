/**
 * The options of the template that change which resources there are, or which properties. Each is a parameter `true` or
 * `false`, and a condition. What only changes values is a parameter too, which the props contain as a token.
 */
import { join } from 'node:path';
import { CfnParameter, type Stack } from 'aws-cdk-lib';
import type { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Capacity } from '../../../cdk/lib/capacity.ts';
import { Encryption } from '../../../cdk/lib/cluster-options.ts';
import type { NodekeeperClusterProps } from '../../../cdk/lib/cluster-props.ts';
import { ROOT } from '../manifest.ts';

/** Values in places that templates.ts replaces. */
const ANY_NODES = 1_000;
const ANY_DAYS = 7;
/** A template does not contain the key of a certificate: main.tf adds that to the code. */
const ANY_CERTIFICATE = join(ROOT, 'test/fixtures/instance-identity/cert.pem');

/** Tokens of the parameters. */
export interface Values {
  readonly text: (name: string) => string;
  readonly number: (name: string) => number;
  readonly list: (name: string) => string[];
}

export interface Option {
  readonly name: string;
  /** The option that is on as well whenever this one is. */
  readonly over?: string;
  /** Options with the same group exclude each other. */
  readonly group?: string;
  /** What it adds to the props of the option that it is over. */
  readonly props: (values: Values) => NodekeeperClusterProps;
}

/** An option stands after the one that it is over. */
export const options: readonly Option[] = [
  { name: 'LongPoll', props: () => ({ policy: { watchMode: 'longPoll' } }) },
  {
    name: 'Network',
    over: 'LongPoll',
    props: ({ list }) => ({
      network: { subnetIds: list('SubnetIds'), securityGroupIds: list('SecurityGroupIds') },
    }),
  },
  {
    name: 'NetworkIpv6',
    over: 'Network',
    props: ({ list }) => ({
      network: { subnetIds: list('SubnetIds'), securityGroupIds: list('SecurityGroupIds'), ipv6: true },
    }),
  },
  { name: 'CreatedKey', group: 'key', props: () => ({ encryption: Encryption.customerManaged() }) },
  { name: 'GivenKey', group: 'key', props: ({ text }) => ({ encryption: Encryption.customerManaged(text('KeyArn')) }) },
  { name: 'AlarmTopic', group: 'alarms', props: ({ text }) => ({ alarmTopicArn: text('AlarmTopicArn') }) },
  { name: 'AlarmEmail', group: 'alarms', props: ({ text }) => ({ alarmEmail: text('AlarmEmailAddress') }) },
  { name: 'NoDashboard', props: () => ({ dashboard: false }) },
  { name: 'HeartbeatUrl', props: () => ({ policy: { heartbeatUrl: 'on' } }) },
  { name: 'ApiUrl', props: () => ({ policy: { apiUrl: 'on' } }) },
  {
    name: 'CustomDomain',
    props: ({ text }) => ({
      customDomain: { domainName: text('DomainName'), certificateArn: text('CertificateArn') },
    }),
  },
  {
    name: 'RestoredTables',
    props: ({ text }) => ({
      restoredTables: {
        health: { tableArn: text('HealthTableArn'), streamArn: text('HealthStreamArn') },
        objects: { tableArn: text('ObjectsTableArn'), streamArn: text('ObjectsStreamArn') },
        control: { tableArn: text('ControlTableArn') },
      },
    }),
  },
  { name: 'ProvisionedCapacity', group: 'capacity', props: () => ({ capacity: Capacity.provisioned(ANY_NODES) }) },
  { name: 'WarmCapacity', group: 'capacity', props: () => ({ capacity: Capacity.onDemand(ANY_NODES) }) },
  // Its permissions name tables, which RestoredTables changes. So the template without options has them.
  { name: 'NoEnrolment', props: () => ({}) },
  { name: 'NoRecovery', group: 'recovery', props: () => ({ pointInTimeRecoveryDays: 0 }) },
  { name: 'RecoveryWindow', group: 'recovery', props: () => ({ pointInTimeRecoveryDays: ANY_DAYS }) },
  { name: 'Unprotected', props: () => ({ deletionProtection: false }) },
  {
    name: 'PermissionsBoundary',
    props: ({ text }) => ({ permissionsBoundaryArn: text('PermissionsBoundaryArn') }),
  },
  { name: 'RunbookAddress', props: ({ text }) => ({ runbookBaseUrl: text('RunbookBaseUrl') }) },
];

const TEXTS = {
  AlarmTopicArn: 'Topic that is notified of alarms',
  AlarmEmailAddress: 'Address that is notified of alarms',
  KeyArn: 'Key that encrypts tables, queues and logs',
  DomainName: 'Custom domain name',
  CertificateArn: 'Certificate of the custom domain name',
  HealthTableArn: 'Restored table of heartbeats',
  HealthStreamArn: 'Its stream',
  ObjectsTableArn: 'Restored table of objects',
  ObjectsStreamArn: 'Its stream',
  ControlTableArn: 'Restored table of the controllers',
  PermissionsBoundaryArn: 'IAM policy that limits every role',
  RunbookBaseUrl: 'Address of the runbooks',
} as const;
const NUMBERS = { LogRetentionDays: 'Retention of logs' } as const;
const LISTS = { SubnetIds: 'Subnets of the functions', SecurityGroupIds: 'Security groups of the functions' } as const;

/** Makes the parameters. Those of options that are off are empty. */
export function valuesIn(stack: Stack): Values {
  const made = (type: string, described: Readonly<Record<string, string>>): ReadonlyMap<string, CfnParameter> =>
    new Map(
      Object.entries(described).map(([id, description]) => [id, new CfnParameter(stack, id, { type, description })]),
    );
  const texts = made('String', TEXTS);
  const numbers = made('Number', NUMBERS);
  const lists = made('CommaDelimitedList', LISTS);
  for (const { name } of options) new CfnParameter(stack, name, { allowedValues: ['true', 'false'] });
  return {
    text: (name) => texts.get(name)!.valueAsString,
    number: (name) => numbers.get(name)!.valueAsNumber,
    list: (name) => lists.get(name)!.valueAsList,
  };
}

/** The props of every template, with those of these options. */
export function propsWith(names: readonly string[], clusterId: string, values: Values): NodekeeperClusterProps {
  const chosen = options.filter(({ name }) => names.includes(name)).map(({ props }) => props(values));
  return {
    outputPrefix: '',
    clusterId,
    logRetention: values.number('LogRetentionDays') as RetentionDays,
    ...(!names.includes('NoEnrolment') && { instanceIdentityCertificateFile: ANY_CERTIFICATE }),
    ...Object.assign({}, ...chosen),
    policy: Object.assign({}, ...chosen.map(({ policy }) => policy)),
  };
}

/** An option with those that it is over. */
export function withOptionsBelow(name: string): string[] {
  const over = options.find((option) => option.name === name)?.over;
  return over === undefined ? [name] : [...withOptionsBelow(over), name];
}
