/** The Terraform module that `npm run release` builds: its files, its templates, and what each says of the other. */
import { X509Certificate } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { RemovalPolicy } from 'aws-cdk-lib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Capacity } from '../../cdk/lib/capacity.ts';
import { Encryption, RETENTION_DAYS, requireProps } from '../../cdk/lib/cluster-options.ts';
import {
  accessEntriesOf,
  type NodekeeperClusterProps,
  policyOf,
  restoredTablesOf,
} from '../../cdk/lib/cluster-props.ts';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { INSTANCE_IDENTITY_KEY_FILE, readInstanceIdentityKey } from '../../cdk/lib/instance-identity-key.ts';
import { functionList } from '../../functions/function-list.ts';
import { buildTerraformModule } from '../../scripts/release/terraform/build.ts';
import { mergedTemplate, type Template } from '../../scripts/release/terraform/one-template.ts';
import { options } from '../../scripts/release/terraform/options.ts';
import { policyInputs } from '../../scripts/release/terraform/policy-inputs.ts';
import { codeHash } from '../../scripts/release/terraform/templates.ts';
import { ACCESS_ENTRIES_FILE } from '../../shared/config/access-entries.ts';
import { parsePolicy } from '../../shared/config/policy.ts';
import { defined } from '../../shared/defined.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { allPairs } from '../cdk/all-pairs.ts';
import { synthesise } from '../cdk/synthesised.ts';
import { parseHcl } from '../support/hcl.ts';
import { HclValues, type ModuleBlocks } from '../support/hcl-values.ts';

const BUILD_MS = 180_000;
/** Of a template in a bucket. */
const TEMPLATE_BYTES_MAX = 1_000_000;
const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-terraform-module-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(async () => {
  buildTerraformModule(folder);
  blocks = (await hclOf('')) as unknown as ModuleBlocks;
  retain = JSON.parse(textOf('templates/retain.json')) as Template;
}, BUILD_MS);

const textOf = (file: string): string => readFileSync(join(folder, file), 'utf8');
let retain: Template;
let blocks: ModuleBlocks;

type Inputs = Readonly<Record<string, unknown>>;
const valuesOf = (inputs: Inputs): HclValues =>
  new HclValues(folder, blocks, inputs, { bucket: 'code', api_files_hash: 'hash' });
/** Messages of the module for these inputs. */
function faultsOf(inputs: Inputs): string[] {
  const values = valuesOf(inputs);
  const faults = Object.keys(inputs).flatMap((name) => values.faultsOf(name));
  return faults.length > 0 ? faults : (values.local('faults') as string[]);
}
/** The parameters that the module passes to the template. */
function parametersOf(inputs: Inputs): Record<string, unknown> {
  const values = valuesOf(inputs);
  const names = ['parameters', 'options', 'limits', 'units', 'reservations'];
  return Object.assign({}, ...names.map((name) => values.local(name))) as Record<string, unknown>;
}

interface Hcl {
  readonly [block: string]: Readonly<Record<string, unknown>>;
}
const hclOf = async (directory: string): Promise<Hcl> => {
  const files = globSync('*.tf', { cwd: join(folder, directory) }).toSorted();
  return (await parseHcl(files.map((file) => [file, textOf(join(directory, file))]))) as unknown as Hcl;
};
const namesOf = (hcl: Hcl, block: string): string[] => Object.keys(hcl[block] ?? {});
const localsOf = (hcl: Hcl): Record<string, unknown> =>
  Object.assign({}, ...(hcl['locals'] as unknown as object[])) as Record<string, unknown>;

const TOPIC = 'arn:aws:sns:eu-west-1:111122223333:alarms';
const KEY = 'arn:aws:kms:eu-west-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef';
const CERTIFICATE = 'arn:aws:acm:eu-west-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef';
const BOUNDARY = 'arn:aws:iam::111122223333:policy/Boundary';
const CERTIFICATE_FILE = join(repositoryRoot, 'test/fixtures/instance-identity/cert.pem');
const PUBLIC_KEY = new X509Certificate(readFileSync(CERTIFICATE_FILE)).publicKey.export({
  type: 'spki',
  format: 'pem',
});
const subnetIds = ['subnet-11111111', 'subnet-22222222'];
const securityGroupIds = ['sg-11111111'];
const network = { subnet_ids: subnetIds, security_group_ids: securityGroupIds };
const tableArn = (name: string): string => `arn:aws:dynamodb:eu-west-1:111122223333:table/${name}`;
const restored = (name: string) => ({
  tableArn: tableArn(name),
  streamArn: `${tableArn(name)}/stream/2026-11-30T10:00`,
});
const restoredTables = {
  health: restored('new-health'),
  objects: restored('new-objects'),
  control: { tableArn: tableArn('new-control') },
};

/** Inputs of the module for each prop of the construct, or why there are none. */
const PROPS: Readonly<
  Record<keyof NodekeeperClusterProps, { readonly inputs?: readonly string[]; readonly reason?: string }>
> = {
  clusterId: { inputs: ['cluster_id'] },
  outputPrefix: { reason: 'the stack has one cluster: outputs.tf reads its outputs by their plain names' },
  policyFile: { reason: 'policy = yamldecode(file(PATH))' },
  policy: { inputs: ['policy'] },
  accessEntries: { inputs: ['access_entries'] },
  accessEntriesFile: { reason: 'access_entries = yamldecode(file(PATH))' },
  instanceIdentityCertificateFile: { inputs: ['instance_identity_public_key'] },
  capacity: { inputs: ['capacity'] },
  nodesMax: { inputs: ['nodes_max'] },
  removalPolicy: { inputs: ['removal_policy'] },
  deletionProtection: { inputs: ['deletion_protection'] },
  pointInTimeRecoveryDays: { inputs: ['point_in_time_recovery_days'] },
  restoredTables: { inputs: ['restored_tables'] },
  restoredTablesFile: { reason: 'restored_tables = jsondecode(file(PATH))' },
  encryption: { inputs: ['customer_managed_key', 'kms_key_arn'] },
  logRetention: { inputs: ['log_retention_days'] },
  customDomain: { inputs: ['custom_domain'] },
  requestsPerSecondMax: { inputs: ['requests_per_second_max'] },
  accountRequestsPerSecondMax: { inputs: ['account_requests_per_second_max'] },
  burstRequestsMax: { inputs: ['burst_requests_max'] },
  accountConcurrency: { inputs: ['account_concurrency'] },
  reservedConcurrency: { inputs: ['reserved_concurrency'] },
  markConcurrencyMax: { inputs: ['mark_concurrency_max'] },
  network: { inputs: ['network'] },
  permissionsBoundaryArn: { inputs: ['permissions_boundary_arn'] },
  tags: { inputs: ['tags'] },
  alarmTopicArn: { inputs: ['alarm_topic_arn'] },
  alarmEmail: { inputs: ['alarm_email'] },
  runbookBaseUrl: { inputs: ['runbook_base_url'] },
  dashboard: { inputs: ['dashboard'] },
};

/** Fields of the policy that are settings of the construct only. */
const FIELDS_WITHOUT_INPUT: Readonly<Partial<Record<keyof Policy, string>>> = {
  nodeMonitorPeriodSeconds: 'rules relate it to other fields; capacity of the tables follows from it',
  beatIntervalSeconds: 'rules relate it to other fields; capacity, limits and reservations follow from it',
  leaseDurationSeconds: 'a rule relates it to beatIntervalSeconds; a variable of functions follows from it',
  witnessGraceSeconds: 'a rule relates it to nodeMonitorGracePeriodSeconds',
  podInitialBackoffSeconds: 'a rule relates it to podMaxBackoffSeconds',
  podMaxBackoffSeconds: 'rules relate it to podInitialBackoffSeconds and podUnschedulableRetrySeconds',
  podUnschedulableRetrySeconds: 'a rule relates it to podMaxBackoffSeconds',
  clusterCIDRs: 'rules relate it to serviceClusterIPRanges and the lengths of prefixes',
  serviceClusterIPRanges: 'rules relate it to clusterCIDRs',
  nodeCIDRMaskSizeIPv4: 'rules relate it to clusterCIDRs',
  nodeCIDRMaskSizeIPv6: 'rules relate it to clusterCIDRs',
  profiles: 'its rules read selectors and the fields that a profile replaces',
};

/** Every field that is an input, but those that choose an option, differs from its default. */
function policyWith(ofNumber: (input: { readonly least: number }) => number, at: number): Record<string, unknown> {
  const inputs = Object.entries(policyInputs()).filter(([field]) => !OPTION_FIELDS.has(field));
  return Object.fromEntries(
    inputs.map(([field, input]) => [field, 'values' in input ? input.values[at] : ofNumber(input)]),
  );
}
const OPTION_FIELDS = new Set(['watchMode', 'heartbeatUrl', 'apiUrl']);

/** Inputs of the module, and the same props of the construct. */
type Choice = readonly [inputs: Inputs, props: NodekeeperClusterProps];
const NONE: Choice = [{}, {}];
const longPoll = { watchMode: 'longPoll' };
const domain = { domainName: 'nodes.example.com', certificateArn: CERTIFICATE };
const fields = policyWith(({ least }) => least, 1);
const CHOICES: readonly (readonly Choice[])[] = [
  [
    NONE,
    [{ policy: longPoll }, { policy: longPoll }],
    [{ network: { ...network, ipv6: false } }, { policy: longPoll, network: { subnetIds, securityGroupIds } }],
    [
      { network: { ...network, ipv6: true } },
      { policy: longPoll, network: { subnetIds, securityGroupIds, ipv6: true } },
    ],
  ],
  [
    NONE,
    [{ nodes_max: 5_500 }, { nodesMax: 5_500 }],
    [
      { requests_per_second_max: 12_000, burst_requests_max: 12_500, account_requests_per_second_max: 20_000 },
      { requestsPerSecondMax: 12_000, burstRequestsMax: 12_500, accountRequestsPerSecondMax: 20_000 },
    ],
  ],
  [
    NONE,
    [{ capacity: { provisioned_nodes: 20_790 } }, { capacity: Capacity.provisioned(20_790) }],
    [{ capacity: { warm_for_nodes: 48_000 } }, { capacity: Capacity.onDemand(48_000) }],
  ],
  [
    NONE,
    [{ account_concurrency: 10 }, { accountConcurrency: 10 }],
    [
      { account_concurrency: 3_000, reserved_concurrency: { heartbeat: 300, 'node-marker': 40 } },
      { accountConcurrency: 3_000, reservedConcurrency: { heartbeat: 300, 'node-marker': 40 } },
    ],
    [{ mark_concurrency_max: 50 }, { markConcurrencyMax: 50 }],
  ],
  [
    NONE,
    [{ customer_managed_key: true }, { encryption: Encryption.customerManaged() }],
    [{ kms_key_arn: KEY }, { encryption: Encryption.customerManaged(KEY) }],
  ],
  [
    NONE,
    [{ alarm_topic_arn: TOPIC }, { alarmTopicArn: TOPIC }],
    [{ alarm_email: 'me@example.com' }, { alarmEmail: 'me@example.com' }],
  ],
  [
    NONE,
    [{ restored_tables: restoredTables }, { restoredTables }],
    [{ removal_policy: 'destroy' }, { removalPolicy: RemovalPolicy.DESTROY }],
  ],
  [
    NONE,
    [{ point_in_time_recovery_days: 0 }, { pointInTimeRecoveryDays: 0 }],
    [{ point_in_time_recovery_days: 7 }, { pointInTimeRecoveryDays: 7 }],
  ],
  [NONE, [{ policy: { heartbeatUrl: 'on' } }, { policy: { heartbeatUrl: 'on' } }]],
  [NONE, [{ policy: { apiUrl: 'on' } }, { policy: { apiUrl: 'on' } }]],
  [NONE, [{ policy: fields }, { policy: fields }]],
  [NONE, [{ dashboard: false }, { dashboard: false }]],
  [
    NONE,
    [{ custom_domain: { domain_name: domain.domainName, certificate_arn: CERTIFICATE } }, { customDomain: domain }],
  ],
  [NONE, [{ instance_identity_public_key: PUBLIC_KEY }, { instanceIdentityCertificateFile: CERTIFICATE_FILE }]],
  [NONE, [{ deletion_protection: false }, { deletionProtection: false }]],
  [NONE, [{ permissions_boundary_arn: BOUNDARY }, { permissionsBoundaryArn: BOUNDARY }]],
  [NONE, [{ runbook_base_url: 'https://git.example//' }, { runbookBaseUrl: 'https://git.example//' }]],
  [NONE, [{ log_retention_days: 7 }, { logRetention: 7 }]],
];

/** One object of several, with the fields of their policies. */
const mergedWith = <T extends { readonly policy?: unknown }>(all: readonly T[]): T => {
  const policy = Object.assign({}, ...all.map((each) => each.policy)) as object;
  return { ...Object.assign({}, ...all), ...(Object.keys(policy).length > 0 && { policy }) } as T;
};

function isAccepted(props: NodekeeperClusterProps): boolean {
  try {
    requireProps(props, policyOf(props));
    restoredTablesOf(props);
    accessEntriesOf(props);
    return true;
  } catch {
    return false;
  }
}

/** Values of one input and of one prop, where no other one refuses them. */
const same = (input: string, prop: keyof NodekeeperClusterProps, values: readonly unknown[]): readonly Choice[] =>
  values.map((value) => [
    { account_requests_per_second_max: 10_000_000, [input]: value },
    { accountRequestsPerSecondMax: 10_000_000, [prop]: value },
  ]);
const WHOLE = [-1, 0, 1, 1.5, 2, 35, 36, 1_000, 1_001, 10_000, 10_001, 1_000_000, 1_000_001];
const ARNS = [
  TOPIC,
  `${TOPIC}.fifo`,
  KEY,
  `${KEY.replace('key/', 'alias/')}`,
  BOUNDARY,
  CERTIFICATE,
  tableArn('one'),
  '',
];
const role = (entry: object): object => ({ arn: 'arn:aws:iam::111122223333:role/Team', groups: ['a'], ...entry });
const LIMITS: readonly (readonly [string, readonly Choice[]])[] = [
  [
    'names of the cluster',
    same('cluster_id', 'clusterId', ['edge-1', 'Edge', '-a', 'a', 'a'.repeat(63), 'a'.repeat(64)]),
  ],
  ['numbers of nodes', same('nodes_max', 'nodesMax', WHOLE)],
  ['heartbeats', same('requests_per_second_max', 'requestsPerSecondMax', WHOLE)],
  ['bursts', same('burst_requests_max', 'burstRequestsMax', WHOLE)],
  [
    'quotas of requests',
    same('account_requests_per_second_max', 'accountRequestsPerSecondMax', [...WHOLE, 199, 10_000_001]),
  ],
  ['executions', same('account_concurrency', 'accountConcurrency', WHOLE)],
  ['executions that mark', same('mark_concurrency_max', 'markConcurrencyMax', WHOLE)],
  ['days of recovery', same('point_in_time_recovery_days', 'pointInTimeRecoveryDays', WHOLE)],
  ['days of logs', same('log_retention_days', 'logRetention', [0, 31, ...RETENTION_DAYS])],
  [
    'reservations',
    [{ api: 1 }, { api: 0 }, { api: 1.5 }, { other: 1 }, { api: 900 }, { api: 901 }, {}].map((reservedConcurrency) => [
      { reserved_concurrency: reservedConcurrency },
      { reservedConcurrency, accountConcurrency: 1_000 },
    ]),
  ],
  [
    'capacities',
    [0, 1, 1.5, 50_000, 50_001, 1_000_001].flatMap((nodes): Choice[] => [
      [{ capacity: { provisioned_nodes: nodes } }, { capacity: Capacity.provisioned(nodes) }],
      [{ capacity: { warm_for_nodes: nodes } }, { capacity: Capacity.onDemand(nodes) }],
    ]),
  ],
  [
    'networks',
    [[], ['subnet-11111111'], ['subnet-1'], ['subnet-11111111', 'sg-11111111'], ['sg-11111111']].flatMap(
      (ids): Choice[] => [
        [
          { network: { ...network, subnet_ids: ids } },
          { policy: longPoll, network: { subnetIds: ids, securityGroupIds } },
        ],
        [
          { network: { ...network, security_group_ids: ids } },
          { policy: longPoll, network: { subnetIds, securityGroupIds: ids } },
        ],
      ],
    ),
  ],
  ['boundaries', same('permissions_boundary_arn', 'permissionsBoundaryArn', ARNS)],
  ['topics', same('alarm_topic_arn', 'alarmTopicArn', ARNS)],
  ['addresses', same('alarm_email', 'alarmEmail', ['me@example.com', 'me', 'me@example', 'a b@example.com', ''])],
  ['keys', ARNS.map((arn) => [{ kms_key_arn: arn }, { encryption: Encryption.customerManaged(arn) }])],
  [
    'custom domains',
    [
      ...[
        'nodes.example.com',
        'https://nodes.example.com',
        'Nodes.example.com',
        'nodes',
        'a.de',
        'a.b',
        'a-.de',
        `${'a.'.repeat(126)}de`,
      ].map((domainName) => ({ domainName, certificateArn: CERTIFICATE })),
      ...ARNS.map((certificateArn) => ({ ...domain, certificateArn })),
    ].map((customDomain) => [
      { custom_domain: { domain_name: customDomain.domainName, certificate_arn: customDomain.certificateArn } },
      { customDomain },
    ]),
  ],
  [
    'restored tables',
    same('restored_tables', 'restoredTables', [
      restoredTables,
      { ...restoredTables, control: { tableArn: TOPIC } },
      { ...restoredTables, control: { tableArn: tableArn('new-health') } },
      { ...restoredTables, health: { ...restored('new-health'), streamArn: restored('other').streamArn } },
      { ...restoredTables, health: { ...restored('new-health'), streamArn: `${tableArn('new-health')}/stream/` } },
    ]),
  ],
  [
    'access entries',
    same('access_entries', 'accessEntries', [
      [],
      [role({})],
      [role({ arn: 'arn:aws:iam::111122223333:user/a/b/Me' })],
      [role({ arn: 'arn:aws:iam::111122223333:root' })],
      [role({}), role({ arn: 'arn:aws:iam::111122223333:role/path/Team' })],
      [role({}), role({ arn: 'arn:aws:iam::111122223333:user/Team' })],
      [role({ groups: [] })],
      [role({ groups: [''] })],
      [role({ groups: Array.from({ length: 10 }, (_, index) => `g${index}`) })],
      [role({ groups: Array.from({ length: 11 }, (_, index) => `g${index}`) })],
      [role({ groups: ['system:nodes'] })],
      ...['', 'me', 'system:me', '{{SessionName}}-{{AccountID}}', '{{Other}}'].map((username) => [role({ username })]),
    ]),
  ],
  [
    'tags',
    same('tags', 'tags', [
      { a: 'b' },
      { 'aws:a': 'b' },
      { a: 'b'.repeat(257) },
      { ['a'.repeat(129)]: 'b' },
      tagsOf(48),
      tagsOf(49),
    ]),
  ],
];

function tagsOf(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`t${index}`, '']));
}

describe('the files of the module', () => {
  it.each(['', 'examples/minimal', 'examples/private'])(
    'are HCL, and refer to what is there: ./%s',
    async (directory) => {
      const hcl = await hclOf(directory);
      const text = JSON.stringify(hcl);
      const known = new Set([
        ...namesOf(hcl, 'variable').map((name) => `var.${name}`),
        ...(hcl['locals'] === undefined ? [] : Object.keys(localsOf(hcl)).map((name) => `local.${name}`)),
        ...namesOf(hcl, 'module').map((name) => `module.${name}`),
        ...Object.entries(hcl['resource'] ?? {}).flatMap(([type, named]) =>
          Object.keys(named as object).map((name) => `${type}.${name}`),
        ),
        ...Object.entries(hcl['data'] ?? {}).flatMap(([type, named]) =>
          Object.keys(named as object).map((name) => `data.${type}.${name}`),
        ),
      ]);
      const referred = text.matchAll(/\b(?:data\.)?(?:var|local|module|aws_\w+|archive_\w+)\.[a-z_]+\b/g);
      const missing = [...referred].map(([name]) => name).filter((name) => !known.has(name));
      expect([...new Set(missing)]).toEqual([]);
      expect(known.size).toBeGreaterThan(0);
    },
  );

  it('use each variable and each local value', async () => {
    const hcl = await hclOf('');
    const text = globSync('*.tf', { cwd: folder })
      .map((file) => textOf(file))
      .join('\n');
    const unused = [
      ...namesOf(hcl, 'variable').map((name) => `var.${name}`),
      ...Object.keys(localsOf(hcl)).map((name) => `local.${name}`),
    ].filter((name) => !new RegExp(String.raw`\b${name.replace('.', String.raw`\.`)}\b`).test(text));
    expect(unused).toEqual([]);
  });

  it('bound the versions of Terraform and of its providers', async () => {
    const [{ required_version: version, required_providers: providers }] = (await hclOf(''))[
      'terraform'
    ] as unknown as [
      { required_version: string; required_providers: [Record<string, { source: string; version: string }>] },
    ];
    expect(version).toMatch(/^>= /);
    for (const [name, provider] of Object.entries(providers[0])) {
      expect(provider.source).toBe(`hashicorp/${name}`);
      expect(provider.version).toMatch(/^>= .*, < /);
    }
  });

  it('have examples with inputs of the module, and outputs that are there', async () => {
    const module = await hclOf('');
    for (const example of ['minimal', 'private']) {
      const hcl = await hclOf(`examples/${example}`);
      const [{ source, ...inputs }] = (hcl['module']!['nodekeeper'] as [Record<string, unknown>]) ?? [];
      expect(source).toBe('../..');
      expect(namesOf(module, 'variable')).toEqual(expect.arrayContaining(Object.keys(inputs)));
      const outputs = [...JSON.stringify(hcl).matchAll(/module\.nodekeeper\.(\w+)/g)].map(([, name = '']) => name);
      expect(namesOf(module, 'output')).toEqual(expect.arrayContaining(outputs));
    }
  });
});

describe('the template', () => {
  const templates = (): readonly Template[] => [retain, JSON.parse(textOf('templates/destroy.json')) as Template];

  it('is in two files, which differ in what happens to the tables with the stack', () => {
    const files = globSync('templates/*.json', { cwd: folder }).map((file) => basename(file, '.json'));
    expect(files.toSorted()).toEqual(['destroy', 'retain']);
    const [kept, deleted] = templates();
    const kinds = Object.entries(kept!.Resources).flatMap(([id, resource]) => {
      const other = deleted!.Resources[id]!;
      if (JSON.stringify(other) === JSON.stringify(resource)) return [];
      expect({ ...other, DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' }).toEqual(resource);
      return [resource.Type];
    });
    expect(kinds).toEqual(['AWS::DynamoDB::Table', 'AWS::DynamoDB::Table', 'AWS::DynamoDB::Table']);
  });

  it('has exactly the parameters that main.tf passes', () => {
    expect(textOf('main.tf')).toMatch(
      / parameters += merge\(local\.parameters, local\.options, local\.limits, local\.units, local\.reservations\)/,
    );
    expect(Object.keys(retain.Parameters).toSorted()).toEqual(Object.keys(parametersOf({})).toSorted());
    expect(Object.keys(valuesOf({}).local('options') as object).toSorted()).toEqual(
      options.map(({ name }) => name).toSorted(),
    );
  });

  it('is within the limits of CloudFormation', () => {
    for (const template of templates()) {
      expect(JSON.stringify(template).length).toBeLessThan(TEMPLATE_BYTES_MAX);
      expect(Object.keys(template.Resources).length).toBeLessThan(500);
      expect(Object.keys(template.Parameters).length).toBeLessThanOrEqual(200);
    }
    expect(textOf('main.tf')).toMatch(/template_url *=/);
  });

  it('has every output that outputs.tf returns, and reads those with care that it may not have', () => {
    const returned = [
      ...textOf('outputs.tf').matchAll(/(try\()?aws_cloudformation_stack\.cluster\.outputs\["(\w+)"\]/g),
    ];
    expect(returned.length).toBeGreaterThan(5);
    for (const [, attempt, name = ''] of returned) {
      expect([name, attempt !== undefined]).toEqual([name, retain.Outputs[name]!.Condition !== undefined]);
    }
  });

  it('has the tables and the audit log under no condition, and no dependency on a resource that has one', () => {
    const kept = Object.values(retain.Resources).filter(({ DeletionPolicy }) => DeletionPolicy === 'Retain');
    expect(kept.map(({ Type, Condition }) => `${Type} ${Condition ?? 'always'}`).toSorted()).toEqual([
      'AWS::DynamoDB::Table always',
      'AWS::DynamoDB::Table always',
      'AWS::DynamoDB::Table always',
      'AWS::KMS::Key HasCreatedKey',
      'AWS::Logs::LogGroup always',
      'AWS::Logs::LogStream always',
    ]);
    const wrong = Object.entries(retain.Resources).flatMap(([id, { DependsOn: names = [], Condition }]) =>
      [names].flat().filter((name) => {
        const other = retain.Resources[name]?.Condition;
        return other !== undefined && other !== Condition ? [`${id} on ${name}`] : false;
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('needs nothing of the CDK, and no named role', () => {
    for (const template of templates()) {
      const text = JSON.stringify(template);
      expect(text).not.toMatch(/cdk-[a-z0-9]+-|cdk-bootstrap|BootstrapVersion|aws:asset|Custom::/);
      expect(text).not.toMatch(/"RoleName"/);
    }
  });

  it('reads the code of each function where main.tf writes it', () => {
    expect(textOf('main.tf')).toContain(
      `var.code_prefix, name, "-", hash, name == "api" ? "-${hole('local.api_files_hash')}" : "", ".zip",`,
    );
    const hashes = JSON.parse(textOf('functions.json')) as Record<string, string>;
    expect(Object.keys(hashes)).toEqual(functionList.map(({ name }) => name));
    for (const { Type, Properties, Metadata } of Object.values(retain.Resources)) {
      if (Type !== 'AWS::Lambda::Function') continue;
      const name = String(Metadata?.['nodekeeper:function']);
      const entries = name === 'api' ? `-${hole('AccessEntriesHash')}` : '';
      expect(Properties['Code']).toEqual({
        S3Bucket: { Ref: 'CodeBucket' },
        S3Key: { 'Fn::Sub': `${hole('CodePrefix')}${name}-${hashes[name]}${entries}.zip` },
      });
    }
    for (const { name } of functionList) {
      expect(hashes[name]).toBe(codeHash(name));
      expect(textOf(`functions/${name}/index.mjs`)).toMatch(/export\{[^}]*\bas handler\b/);
    }
  });

  it('is refused where two options change one value', () => {
    const template = (size: number): Template => ({
      Parameters: {},
      Resources: { Table: { Type: 'AWS::DynamoDB::Table', Properties: { size } } },
      Outputs: {},
    });
    const variant = (option: string, size: number) => ({ option, over: 0, group: undefined, template: template(size) });
    expect(() => mergedTemplate(template(1), [variant('A', 2), variant('B', 1)])).not.toThrow();
    expect(() => mergedTemplate(template(1), [variant('A', 2), variant('B', 3)])).toThrow(
      'Table.size: A and B change it',
    );
  });

  const cases = allPairs(CHOICES).map((choices) => ({
    inputs: mergedWith([{ cluster_id: 'edge-1' } as Inputs, ...choices.map(([inputs]) => inputs)]),
    props: mergedWith([{ clusterId: 'edge-1', outputPrefix: '' }, ...choices.map(([, props]) => props)]),
  }));

  it.each(cases)('is that of the construct but for the code: $inputs', ({ inputs, props }) => {
    expect(faultsOf(inputs)).toEqual([]);
    const { StaticTokens: _tokens, ...given } = parametersOf(inputs);
    const policy = policyOf(props);
    expect(policyOf({ policy: JSON.parse(String(given['Policy'])) as Partial<Policy> })).toEqual(policy);
    const template = JSON.parse(String(valuesOf(inputs).local('template'))) as Template;
    const found = resolved(template, { ...given, Policy: JSON.stringify(policy) });
    expect(found).toEqual(resolved(synthesise(props).toJSON() as Template, {}));
  });

  it('is compared with each prop that has an input', () => {
    const compared = new Set(cases.flatMap(({ props }) => Object.keys(props)));
    const notCompared = Object.entries(PROPS).filter(
      ([prop, { inputs }]) => inputs !== undefined && !compared.has(prop),
    );
    // Files beside the code; CloudFormation adds the tags of a stack.
    expect(notCompared.map(([prop]) => prop)).toEqual(['accessEntries', 'tags']);
  });
});

describe('the inputs', () => {
  const source = readFileSync(join(repositoryRoot, 'cdk/lib/cluster-props.ts'), 'utf8');

  it('are those of the props of the construct, or there is a reason', () => {
    const [, body = ''] = source.split('export interface NodekeeperClusterProps {\n');
    const props = [...body.split('\n}\n')[0]!.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name = '']) => name);
    expect(Object.keys(PROPS).toSorted()).toEqual(props.toSorted());
    const inputs = Object.values(PROPS).flatMap(({ inputs: names = [] }) => names);
    const own = ['code_bucket', 'code_prefix', 'stack_name', 'static_tokens'];
    expect([...new Set(inputs), ...own].toSorted()).toEqual(Object.keys(blocks.variable).toSorted());
  });

  it('are the fields of the policy, or there is a reason', () => {
    const fields = [...Object.keys(policyInputs()), ...Object.keys(FIELDS_WITHOUT_INPUT)];
    expect(fields.toSorted()).toEqual(Object.keys(defaultPolicy).toSorted());
  });

  it('are in the README of the module, each once', () => {
    const [, table = ''] = textOf('README.md').split('| --- | --- |\n');
    const rows = table.split('\n\n')[0]!.split('\n');
    const named = rows.flatMap((row) => [...row.split(' | ')[0]!.matchAll(/`(\w+)`/g)].map(([, name]) => name));
    expect(named.toSorted()).toEqual(Object.keys(blocks.variable).toSorted());
  });

  it('that are refused name themselves in the message', () => {
    const unnamed = Object.entries(blocks.variable).flatMap(([name, [{ validation = [] }]]) =>
      validation.filter(({ error_message: message }) => !message.startsWith(name)).map(() => name),
    );
    expect(unnamed).toEqual([]);
  });

  it.each(LIMITS)('%s have the limits of the construct', (_, pairs) => {
    for (const [inputs, props] of pairs) {
      expect([inputs, faultsOf(inputs)]).toEqual([inputs, isAccepted(props) ? [] : [expect.any(String)]]);
    }
  });

  it('that exclude each other, or depend on each other, are refused with every fault', () => {
    const wrong = {
      alarm_email: 'me@example.com',
      alarm_topic_arn: TOPIC,
      removal_policy: 'destroy',
      restored_tables: restoredTables,
      network: { ...network, ipv6: false },
      policy: { watchMode: 'stream', nodeMonitorGracePeriodSeconds: 20, fullDisruption: 'maybe', profiles: [] },
      nodes_max: 9_000,
      requests_per_second_max: 400,
      account_requests_per_second_max: 300,
      account_concurrency: 200,
      reserved_concurrency: { api: 150, nothing: 1 },
    };
    expect(faultsOf(wrong).map((fault) => fault.replace(/is no function: .*/, 'is no function'))).toEqual([
      'policy.fullDisruption must be one of normal, hold: "maybe"',
      'policy.nodeMonitorGracePeriodSeconds must be a whole number from 23 to 31536000: 20',
      'policy.profiles is no input of this module: []',
      'reserved_concurrency.nothing is no function',
      'policy.watchMode must be longPoll with network: function URLs do not stream inside of a VPC',
      'alarm_email cannot be combined with alarm_topic_arn',
      'removal_policy must be retain with restored_tables: a deletion of the stack deletes the tables from before the restore',
      'requests_per_second_max must allow the 900 heartbeats per second of 9000 nodes: 400',
      'requests_per_second_max is 400, more than API Gateway accepts for the account and Region (300): request a higher quota, then set account_requests_per_second_max',
      "reserved_concurrency must leave 100 of the account's 200 executions unreserved: 49",
    ]);
  });

  it('that are files beside the code are those that the function reads', () => {
    const entry = { arn: 'arn:aws:iam::111122223333:role/Team', username: null, groups: ['nodekeeper:admins'] };
    const files = new HclValues(folder, blocks, {
      access_entries: [entry],
      instance_identity_public_key: PUBLIC_KEY,
    }).local('api_files');
    expect(files).toEqual({
      [ACCESS_ENTRIES_FILE]: JSON.stringify([{ arn: entry.arn, groups: entry.groups }]),
      [INSTANCE_IDENTITY_KEY_FILE]: readInstanceIdentityKey(CERTIFICATE_FILE),
    });
  });
});

describe('the policy', () => {
  const inputs = Object.entries(policyInputs());

  it('has inputs that no rule relates to each other', () => {
    const values = inputs.map(([, input]) => ('values' in input ? input.values : [input.least, input.most]));
    for (const combination of allPairs<unknown>(values)) {
      const policy = Object.fromEntries(inputs.map(([field], index) => [field, combination[index]]));
      expect(parsePolicy(policy)).toMatchObject({ kind: 'ok' });
    }
  });

  it('has bounds that are the last allowed values', () => {
    for (const [field, input] of inputs) {
      const beyond = 'values' in input ? ['other'] : [input.least - 0.001, input.most + (input.isWhole ? 1 : 0.001)];
      for (const value of beyond) expect(parsePolicy({ [field]: value }), field).toMatchObject({ kind: 'faults' });
    }
  });

  it('is described by the README of the module', () => {
    const [, list = ''] = textOf('README.md').split('| `policy` |');
    const named = [...(list.split('\n')[0] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name);
    expect(named).toEqual(inputs.map(([field]) => field));
  });
});

/** A parameter in `Fn::Sub`. */
function hole(name: string): string {
  return `\${${name}}`;
}

/**
 * The template that CloudFormation sees with these parameters: without what is left out, without its conditions, and
 * without what the module has in another place. The id of a subscription contains its address.
 */
function resolved(template: Template, given: Inputs): object {
  const lists = { SubnetIds: listOf(given['SubnetIds']), SecurityGroupIds: listOf(given['SecurityGroupIds']) };
  const values: Inputs = { ...given, ...defined(lists) };
  const conditions = new Map<string, unknown>();
  const conditionOf = (name: string): unknown => {
    if (!conditions.has(name)) conditions.set(name, filled(template.Conditions?.[name], values, conditionOf));
    return conditions.get(name);
  };
  const there = <T extends { readonly Condition?: string }>(section: Readonly<Record<string, T>>) =>
    Object.entries(section).filter(([, { Condition }]) => Condition === undefined || conditionOf(Condition) === true);
  const resources = there(template.Resources).map(([id, resource]) => {
    const { Condition: _condition, DependsOn, ...others } = resource;
    const { Code: _code, ...Properties } = resource.Properties ?? {};
    const names = [DependsOn ?? []].flat().filter((name) => retain.Resources[name]?.Condition === undefined);
    const isSubscription = resource.Type === 'AWS::SNS::Subscription';
    return [isSubscription ? 'Subscription' : id, { ...others, Properties, DependsOn: names }];
  });
  const outputs = there(template.Outputs).map(([name, { Condition: _condition, ...output }]) => [name, output]);
  const found = { Resources: Object.fromEntries(resources), Outputs: Object.fromEntries(outputs) } as object;
  const text = JSON.stringify(filled(found, values, conditionOf));
  const partitions = Object.keys(template.Conditions ?? {}).filter((name) => typeof conditionOf(name) !== 'boolean');
  const used = partitions.filter((name) => text.includes(`"${name}"`)).map((name) => [name, conditionOf(name)]);
  return { ...(JSON.parse(text) as object), Conditions: Object.fromEntries(used) };
}

function listOf(value: unknown): unknown {
  return typeof value === 'string' ? value.split(',') : undefined;
}

/**
 * With values in place of references, the parts that conditions choose, and texts that are next to each other joined,
 * as the CDK writes them. Undefined: AWS::NoValue.
 */
function filled(value: unknown, values: Inputs, conditionOf: (name: string) => unknown): unknown {
  const inner = (each: unknown): unknown => filled(each, values, conditionOf);
  if (Array.isArray(value)) return value.map(inner).filter((each) => each !== undefined);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  const [[name, argument] = ['', undefined]] = entries;
  if (entries.length === 1 && name === 'Ref') {
    if (argument === 'AWS::NoValue') return undefined;
    if (Object.hasOwn(values, String(argument))) return values[String(argument)];
  }
  if (entries.length === 1 && name === 'Condition') return conditionOf(String(argument));
  const holds = name === 'Fn::If' ? conditionOf((argument as [string])[0]) : undefined;
  if (typeof holds === 'boolean') return inner((argument as unknown[])[holds ? 1 : 2]);
  const done = defined(Object.fromEntries(entries.map(([key, each]) => [key, inner(each)])));
  if (entries.length !== 1) return done;
  const args = Object.values(done)[0] as unknown[];
  const isKnown = Array.isArray(args) && args.every((each) => typeof each !== 'object');
  if (name === 'Fn::Equals' && isKnown) return String(args[0]) === String(args[1]);
  if (name === 'Fn::Not' && isKnown) return args[0] === false;
  if (name === 'Fn::Or' && isKnown) return args.includes(true);
  if (name === 'Fn::Split' && isKnown) return String(args[1]).split(String(args[0]));
  if (name === 'Fn::Select' && Array.isArray(args[1])) return args[1][Number(args[0])];
  if (name !== 'Fn::Join') return done;
  const [separator, parts] = args as [string, unknown[]];
  if (separator !== '' || !Array.isArray(parts)) return done;
  const joined: unknown[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    const text = typeof part === 'number' ? String(part) : part;
    if (typeof text === 'string' && typeof last === 'string') joined[joined.length - 1] = last + text;
    else joined.push(text);
  }
  return joined.length === 1 ? joined[0] : { 'Fn::Join': ['', joined] };
}
