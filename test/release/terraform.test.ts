/** The Terraform module that `npm run release` builds: its files, its templates, and what each says of the other. */
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { policyOf } from '../../cdk/lib/cluster-props.ts';
import { markConcurrencyOf, reservedConcurrencyOf } from '../../cdk/lib/concurrency.ts';
import { functionList } from '../../functions/function-list.ts';
import { buildTerraformModule } from '../../scripts/release/terraform/build.ts';
import { policyInputs } from '../../scripts/release/terraform/policy-inputs.ts';
import {
  codeHash,
  moduleSettings,
  type OptionSet,
  type OptionValues,
  optionSets,
  propsOf,
  type Template,
  templateName,
  templateOf,
} from '../../scripts/release/terraform/templates.ts';
import { parsePolicy } from '../../shared/config/policy.ts';
import { defined } from '../../shared/defined.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { allPairs } from '../cdk/all-pairs.ts';
import { synthesise } from '../cdk/synthesised.ts';
import { parseHcl } from '../support/hcl.ts';

const BUILD_MS = 180_000;
const TEMPLATE_IN_REQUEST_BYTES_MAX = 51_200;
const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-terraform-module-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => buildTerraformModule(folder), BUILD_MS);

const textOf = (file: string): string => readFileSync(join(folder, file), 'utf8');
const templateIn = (set: OptionSet): Template => JSON.parse(textOf(`templates/${templateName(set)}`)) as Template;

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

describe('the templates', () => {
  it('are one of each set of options, and of no other', () => {
    const files = globSync('templates/*.json', { cwd: folder }).map((file) => basename(file));
    expect(files.toSorted()).toEqual(optionSets.map(templateName).toSorted());
    // main.tf makes the same names of its variables.
    expect(new Set(files.flatMap((file) => basename(file, '.json').split('-')))).toEqual(
      new Set(['1000', '10000', 'public', 'vpc', 'aws', 'key', 'silent', 'topic']),
    );
    for (const words of ['"public" : "vpc"', '"key" : "aws"', '"silent" : "topic"', '[1000, 10000]']) {
      expect(textOf('main.tf') + textOf('variables.tf')).toContain(words);
    }
  });

  it('have exactly the parameters that main.tf passes', async () => {
    const locals = localsOf(await hclOf(''));
    const named = (name: string): string[] => Object.keys(locals[name] as object);
    for (const set of optionSets) {
      const given = [
        ...named('parameters'),
        ...(set.network ? named('network_parameters') : []),
        ...(set.alarmTopic ? named('alarm_parameters') : []),
      ];
      expect(Object.keys(templateIn(set).Parameters).toSorted(), templateName(set)).toEqual(given.toSorted());
    }
  });

  it('have every output that outputs.tf returns', () => {
    const returned = [...textOf('outputs.tf').matchAll(/\.outputs\["(\w+)"\]/g)].map(([, name = '']) => name);
    expect(returned.length).toBeGreaterThan(5);
    for (const set of optionSets) {
      expect(Object.keys(templateIn(set).Outputs), templateName(set)).toEqual(expect.arrayContaining(returned));
    }
  });

  it('need nothing of the CDK, and no named role', () => {
    for (const set of optionSets) {
      const text = textOf(`templates/${templateName(set)}`);
      expect(text).not.toMatch(/cdk-[a-z0-9]+-|cdk-bootstrap|BootstrapVersion|aws:asset|Custom::/);
      expect(text).not.toMatch(/"RoleName"/);
      expect(text.length).toBeGreaterThan(TEMPLATE_IN_REQUEST_BYTES_MAX);
    }
    expect(textOf('main.tf')).toMatch(/template_url *=/);
  });

  it('read the code of each function where main.tf writes it', () => {
    expect(textOf('main.tf')).toContain(
      `var.code_prefix, name, "-", hash, name == "api" ? "-${hole('local.access_entries_hash')}" : "", ".zip",`,
    );
    const hashes = JSON.parse(textOf('functions.json')) as Record<string, string>;
    expect(Object.keys(hashes)).toEqual(functionList.map(({ name }) => name));
    for (const set of optionSets) {
      for (const { Type, Properties, Metadata } of Object.values(templateIn(set).Resources)) {
        if (Type !== 'AWS::Lambda::Function') continue;
        const name = String(Metadata?.['nodekeeper:function']);
        const entries = name === 'api' ? `-${hole('AccessEntriesHash')}` : '';
        expect(Properties['Code']).toEqual({
          S3Bucket: { Ref: 'CodeBucket' },
          S3Key: { 'Fn::Sub': `${hole('CodePrefix')}${name}-${hashes[name]}${entries}.zip` },
        });
      }
    }
    for (const { name } of functionList) {
      expect(hashes[name]).toBe(codeHash(name));
      expect(textOf(`functions/${name}/index.mjs`)).toMatch(/export\{[^}]*\bas handler\b/);
    }
  });

  it('are the same when they are made again', () => {
    for (const set of [optionSets[0]!, optionSets.at(-1)!]) expect(templateOf(set)).toEqual(templateIn(set));
  });

  const values: OptionValues = {
    clusterId: 'edge-1',
    subnetIds: ['subnet-11111111', 'subnet-22222222'],
    securityGroupIds: ['sg-11111111'],
    alarmTopicArn: 'arn:aws:sns:eu-west-1:111122223333:alarms',
  };
  const YES_NO = [false, true];
  const boundaryArn = 'arn:aws:iam::111122223333:policy/Boundary';
  const sets = allPairs<number | boolean>([[1_000, 10_000], YES_NO, YES_NO, YES_NO, YES_NO, YES_NO, YES_NO]).map(
    ([nodesMax, network, customerKey, alarmTopic, isNewAccount, hasBoundary, hasPolicy]) => ({
      set: { nodesMax, network, customerKey, alarmTopic } as OptionSet,
      more: defined({
        accountConcurrency: isNewAccount ? 10 : undefined,
        permissionsBoundaryArn: hasBoundary ? boundaryArn : undefined,
        policy: hasPolicy ? policyWith(({ least }) => least, 1) : undefined,
      }),
    }),
  );

  it.each(sets)('are those of the construct but for the code: $set, $more', ({ set, more }) => {
    const props = propsOf(set, { ...values, ...more });
    const policy = policyOf(props);
    const given = {
      ClusterId: values.clusterId,
      SubnetIds: values.subnetIds,
      SecurityGroupIds: values.securityGroupIds,
      AlarmTopicArn: values.alarmTopicArn,
      Policy: JSON.stringify(policy),
      DetectionSeconds: String(policy.nodeMonitorGracePeriodSeconds + policy.nodeMonitorPeriodSeconds),
      ReserveExecutions: String(more.accountConcurrency === undefined),
      MarkConcurrencyMax: markConcurrencyOf(props),
      PermissionsBoundaryArn: more.permissionsBoundaryArn ?? '',
    };
    const { Parameters: _parameters, Conditions, ...template } = withoutCode(templateIn(set));
    const conditions = Object.entries(filled(Conditions, given) as object);
    const own = Object.fromEntries(conditions.filter(([, value]) => typeof value === 'boolean'));
    const others = Object.fromEntries(conditions.filter(([name]) => !Object.hasOwn(own, name)));
    const found = { ...(filled(template, given, own) as object), ...(conditions.length > 2 && { Conditions: others }) };
    const {
      Parameters: _own,
      Rules: _rules,
      ...expected
    } = filled(withoutCode(synthesise(props).toJSON() as Template), {}) as Template;
    expect(found).toEqual(expected);
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

  it('begins where a fleet of the size reserves executions', () => {
    const { reservingConcurrency } = moduleSettings();
    for (const [nodesMax, limit] of Object.entries(reservingConcurrency)) {
      const countAt = (accountConcurrency: number) =>
        Object.keys(reservedConcurrencyOf({ nodesMax: Number(nodesMax), accountConcurrency }, defaultPolicy)).length;
      expect([countAt(limit - 1), countAt(limit) > 0]).toEqual([0, true]);
    }
  });
});

/** Every input of the module differs from its default. */
function policyWith(ofNumber: (input: { readonly least: number }) => number, at: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(policyInputs()).map(([field, input]) => [
      field,
      'values' in input ? input.values[at] : ofNumber(input),
    ]),
  );
}

/** A parameter in `Fn::Sub`. */
const hole = (name: string): string => `\${${name}}`;

function withoutCode(template: Template): Template {
  const resources = Object.entries(template.Resources).map(([id, resource]) => {
    const { Code: _code, ...properties } = resource.Properties ?? {};
    return [id, { ...resource, Properties: properties }];
  });
  return { ...template, Resources: Object.fromEntries(resources) };
}

/**
 * With values in place of references, the parts that conditions choose, and texts that are next to each other joined,
 * as the CDK writes them. Undefined: AWS::NoValue.
 */
function filled(
  value: unknown,
  values: Readonly<Record<string, unknown>>,
  conditions: Readonly<Record<string, unknown>> = {},
): unknown {
  const inner = (each: unknown): unknown => filled(each, values, conditions);
  if (Array.isArray(value)) return value.map(inner);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  const [[name, argument] = ['', undefined]] = entries;
  if (entries.length === 1 && name === 'Ref') {
    if (argument === 'AWS::NoValue') return undefined;
    if (Object.hasOwn(values, String(argument))) return values[String(argument)];
  }
  const done = defined(Object.fromEntries(entries.map(([key, each]) => [key, inner(each)])));
  if (entries.length !== 1) return done;
  const args = Object.values(done)[0] as unknown[];
  if (name === 'Fn::Equals' && args.every((each) => typeof each === 'string')) return args[0] === args[1];
  if (name === 'Fn::Not' && typeof args[0] === 'boolean') return !args[0];
  const holds = name === 'Fn::If' ? conditions[String(args[0])] : undefined;
  if (typeof holds === 'boolean') return inner((argument as unknown[])[holds ? 1 : 2]);
  if (name !== 'Fn::Join') return done;
  const [separator, parts] = args as [string, unknown[]];
  if (separator !== '' || !Array.isArray(parts)) return done;
  const joined: unknown[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (typeof part === 'string' && typeof last === 'string') joined[joined.length - 1] = last + part;
    else joined.push(part);
  }
  return joined.length === 1 ? joined[0] : { 'Fn::Join': ['', joined] };
}
