/**
 * Terraform itself, with its provider of AWS, applies the module: what is made in which order, that a second plan has
 * no changes, that an update keeps the former code until the stack no longer uses it, and what a failed one leaves.
 * S3 and CloudFormation are stood in for. The provider "archive" is not here: its zip files are written by the test.
 */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { functionList } from '../../functions/function-list.ts';
import { buildTerraformModule } from '../../scripts/release/terraform/build.ts';
import { type DeployedByRequests, startDeployedByRequests } from '../support/deployed-by-requests.ts';

/**
 * A directory that `terraform providers mirror` wrote. Only where the variable names it: each of five commands needs
 * 20 s of CPU, most of it to start the provider.
 */
const PLUGINS = process.env['TERRAFORM_PLUGINS'] ?? '';
const SKIPPED = PLUGINS === '' ? ' (skipped: no mirror of Terraform is named)' : '';
const NAMES = functionList.map(({ name }) => name);
const COMMAND_MS = 240_000;
const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-terraform-apply-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly output: string;
}

async function terraform(...words: readonly string[]): Promise<Ended> {
  const env = { ...process.env, TF_CLI_CONFIG_FILE: join(folder, 'cli.tfrc') };
  return new Promise((resolve) => {
    const options = { cwd: folder, env, timeout: COMMAND_MS, maxBuffer: 2 ** 24 };
    execFile('terraform', [...words, '-no-color', '-input=false'], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: `${stdout}\n${stderr}` });
    });
  });
}

/** The module with a zip file per function in place of `data "archive_file"`. */
function writeModule(directory: string): void {
  buildTerraformModule(directory);
  const main = readFileSync(join(directory, 'main.tf'), 'utf8');
  const block = /^data "archive_file" "function" \{\n[\s\S]*?^\}\n/m;
  expect(main).toMatch(block);
  const path = 'data.archive_file.function[each.key].output_path';
  expect(main).toContain(path);
  writeFileSync(
    join(directory, 'main.tf'),
    main.replace(block, '').replace(path, `"\${path.module}/.zips/\${each.key}.zip"`),
  );
  const versions = readFileSync(join(directory, 'versions.tf'), 'utf8');
  writeFileSync(join(directory, 'versions.tf'), versions.replace(/^ {4}archive = \{\n[\s\S]*?^ {4}\}\n/m, ''));
  mkdirSync(join(directory, '.zips'));
  for (const name of NAMES) writeFileSync(join(directory, '.zips', `${name}.zip`), `code of ${name}`);
}

function writeConfiguration(url: string, inputs: string): void {
  writeFileSync(
    join(folder, 'main.tf'),
    `provider "aws" {
  region                      = "eu-central-1"
  access_key                  = "example"
  secret_key                  = "example"
  skip_credentials_validation = true
  skip_requesting_account_id  = true
  skip_metadata_api_check     = true
  s3_use_path_style           = true
  endpoints {
    s3             = "${url}"
    cloudformation = "${url}"
  }
}
module "nodekeeper" {
  source = "./module"
${inputs}
}
output "endpoint" {
  value = module.nodekeeper.endpoint
}
`,
  );
}

const ENTRY = `  access_entries = [
    { arn = "arn:aws:iam::111122223333:role/Team", username = "{{SessionName}}", groups = ["nodekeeper:admins"] }
  ]`;
const PUBLIC_KEY = new X509Certificate(
  readFileSync(join(repositoryRoot, 'test/fixtures/instance-identity/cert.pem')),
).publicKey.export({ type: 'spki', format: 'pem' });
const POLICY = `  policy              = { nodeMonitorGracePeriodSeconds = 60, fullDisruption = "hold", apiUrl = "on" }
  account_concurrency = 10
  capacity            = { provisioned_nodes = 5000 }
  log_retention_days  = 7
  runbook_base_url    = "https://git.example/"
  network = {
    subnet_ids         = ["subnet-11111111", "subnet-22222222"]
    security_group_ids = ["sg-11111111"]
  }
  custom_domain = {
    domain_name     = "nodes.example.com"
    certificate_arn = "arn:aws:acm:eu-central-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef"
  }
  instance_identity_public_key = <<EOT
${PUBLIC_KEY}EOT`;
const isCode = (change: string): boolean => change.endsWith('.zip');

describe.skipIf(PLUGINS === '')(`terraform apply${SKIPPED}`, () => {
  let cloud: DeployedByRequests;

  beforeAll(async () => {
    cloud = await startDeployedByRequests();
    writeModule(join(folder, 'module'));
    writeFileSync(
      join(folder, 'cli.tfrc'),
      `disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = "${PLUGINS}"\n  }\n}\n`,
    );
    writeConfiguration(cloud.url, `${ENTRY}\n${POLICY}`);
    const { code, output } = await terraform('init');
    expect(output).toContain('successfully initialized');
    expect(code).toBe(0);
  }, COMMAND_MS);
  afterAll(() => cloud?.close());

  it('uploads code and template to a private bucket, then makes the stack', { timeout: COMMAND_MS }, async () => {
    const { code, output } = await terraform('apply', '-auto-approve');
    expect(output).toContain('Apply complete!');
    expect(output).toContain('endpoint = "the Endpoint"');
    expect(code).toBe(0);
    expect(cloud.unknown).toEqual([]);
    const [[name = '', bucket] = []] = cloud.buckets;
    expect(name).toMatch(/^nodekeeper-code-/);
    expect([...bucket!.settings.keys()].toSorted()).toEqual([
      'encryption',
      'policy',
      'publicAccessBlock',
      'versioning',
    ]);
    expect(bucket!.settings.get('publicAccessBlock')?.match(/>true</g)).toHaveLength(4);
    expect(bucket!.settings.get('versioning')).toContain('<Status>Enabled</Status>');
    const { Statement: statements } = JSON.parse(bucket!.settings.get('policy')!) as { readonly Statement: object[] };
    expect(statements).toMatchObject([{ Sid: 'TlsOnly', Effect: 'Deny' }]);
    expect([...bucket!.objects.keys()].filter(isCode)).toHaveLength(NAMES.length);
    expect(cloud.changes.slice(-2)).toEqual(['Nodekeeper CREATE_IN_PROGRESS', 'Nodekeeper CREATE_COMPLETE']);
    const stack = cloud.stacks.get('Nodekeeper')!;
    expect(stack.parameters).toMatchObject({ ClusterId: 'nodekeeper', StaticTokens: '[]', CodeBucket: name });
    expect(stack.code).toHaveLength(NAMES.length);
    expect(stack.template).toContain('{"ThrottlingRateLimit":1000,"ThrottlingBurstLimit":2000}');
    expect(JSON.parse(stack.parameters['Policy']!)).toEqual({
      nodeMonitorGracePeriodSeconds: 60,
      fullDisruption: 'hold',
      apiUrl: 'on',
      watchMode: 'longPoll',
    });
    expect(stack.parameters).toMatchObject({
      DetectionSeconds: '65',
      ReservedApi: '',
      MarkConcurrencyMax: '2',
      LongPoll: 'true',
      NetworkIpv6: 'false',
      SubnetIds: 'subnet-11111111,subnet-22222222',
      ProvisionedCapacity: 'true',
      HealthReadUnits: '88',
      RequestsPerSecondMax: '1000',
      NoEnrolment: 'false',
      RunbookBaseUrl: 'https://git.example',
    });
  });

  it('refuses a policy that functions would refuse, with every fault', { timeout: COMMAND_MS }, async () => {
    const before = cloud.changes.length;
    const wrong = POLICY.replace('60', '20').replace('"hold"', '"hold", watchMode = "stream", beatIntervalSeconds = 5');
    writeConfiguration(cloud.url, `${ENTRY}\n${wrong}`);
    const { code, output } = await terraform('apply', '-auto-approve');
    const text = output.replaceAll(/\s+/g, ' ');
    expect(text).toContain('policy.nodeMonitorGracePeriodSeconds must be a whole number from 23 to 31536000: 20');
    expect(text).toContain('policy.beatIntervalSeconds is no input of this module: 5');
    expect(text).toContain('policy.watchMode must be longPoll with network');
    expect(code).toBe(1);
    expect(cloud.changes.slice(before)).toEqual([]);
  });

  it('keeps the former code when an update fails', { timeout: COMMAND_MS }, async () => {
    const before = cloud.changes.length;
    cloud.failure = 'The role may not be changed';
    writeConfiguration(cloud.url, `${ENTRY.replace('Team', 'OtherTeam')}\n${POLICY}`);
    const { code, output } = await terraform('apply', '-auto-approve');
    cloud.failure = undefined;
    expect(output).toContain('The role may not be changed');
    expect(code).toBe(1);
    const [uploaded, ...changes] = cloud.changes.slice(before);
    expect(uploaded).toMatch(/^put nodekeeper\/api-/);
    expect(changes).toEqual(['Nodekeeper UPDATE_IN_PROGRESS', 'Nodekeeper UPDATE_ROLLBACK_COMPLETE']);
  });

  it('removes the former code after the stack was updated', { timeout: COMMAND_MS }, async () => {
    const before = cloud.changes.length;
    const { code } = await terraform('apply', '-auto-approve');
    expect(code).toBe(0);
    const [started, done, removed, ...more] = cloud.changes.slice(before);
    expect([started, done]).toEqual(['Nodekeeper UPDATE_IN_PROGRESS', 'Nodekeeper UPDATE_COMPLETE']);
    expect(removed).toMatch(/^delete nodekeeper\/api-/);
    expect(more).toEqual([]);
    const [[, bucket] = []] = cloud.buckets;
    expect([...bucket!.objects.keys()].filter(isCode).toSorted()).toEqual(
      cloud.stacks.get('Nodekeeper')!.code.toSorted(),
    );
  });

  it('has nothing to change afterwards', { timeout: COMMAND_MS }, async () => {
    const { code, output } = await terraform('plan', '-detailed-exitcode');
    expect(output).toContain('No changes.');
    expect(code).toBe(0);
  });

  it('is destroyed with its bucket, the stack before its code', { timeout: COMMAND_MS }, async () => {
    const before = cloud.changes.length;
    const { code, output } = await terraform('destroy', '-auto-approve');
    expect(output).toContain('Destroy complete!');
    expect(code).toBe(0);
    expect(cloud.changes[before]).toBe('Nodekeeper DELETE_IN_PROGRESS');
    expect(cloud.changes[before + 1]).toBe('Nodekeeper DELETE_COMPLETE');
    expect(cloud.buckets.size).toBe(0);
    expect(cloud.unknown).toEqual([]);
  });
});
