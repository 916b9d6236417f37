/**
 * Stands for S3 and CloudFormation where a tool deploys by their requests (Terraform's provider of AWS): buckets with
 * versions, and stacks that need what their templates need. As in AWS, a stack is done some requests after it was asked
 * for, its template and code are read from a bucket while it works, and what a template lacks is refused in
 * CloudFormation's words (https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/CommonErrors.html).
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { type XmlValue, xmlElement } from '../../aws-local/cloud/xml.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';

const ACCOUNT = '111122223333';
/** A stack is in progress for so many descriptions. */
const DESCRIPTIONS_IN_PROGRESS = 2;
const S3 = 'http://s3.amazonaws.com/doc/2006-03-01/';
const CLOUDFORMATION = 'http://cloudformation.amazonaws.com/doc/2010-05-15/';

interface Version {
  readonly versionId: string;
  readonly bytes: Buffer;
  readonly contentType: string;
}

interface Bucket {
  /** Versions of each key, the last one is read. */
  readonly objects: Map<string, readonly Version[]>;
  /** XML or JSON of each part of its configuration that was set, such as `policy`. */
  readonly settings: Map<string, string>;
}

export interface DeployedStack {
  readonly id: string;
  status: string;
  /** Descriptions until it is done, and what it is then. */
  pending: { left: number; readonly done: string } | undefined;
  reason: string | undefined;
  parameters: Readonly<Record<string, string>>;
  outputs: Readonly<Record<string, string>>;
  template: string;
  /** Keys of the code of its functions. */
  code: readonly string[];
  tags: Readonly<Record<string, string>>;
}

export interface DeployedByRequests {
  /** http://127.0.0.1:PORT */
  readonly url: string;
  readonly buckets: ReadonlyMap<string, Bucket>;
  readonly stacks: ReadonlyMap<string, DeployedStack>;
  /** What changed objects and stacks, in order: `put KEY`, `delete KEY`, `CreateStack NAME`, `NAME CREATE_COMPLETE`. */
  readonly changes: readonly string[];
  /** Requests that it does not know. */
  readonly unknown: readonly string[];
  /** Why stacks that are asked for fail and roll back. */
  failure: string | undefined;
  close(): Promise<void>;
}

interface Template {
  readonly Parameters?: Readonly<Record<string, { readonly Default?: string; readonly AllowedPattern?: string }>>;
  readonly Resources: Readonly<
    Record<string, { readonly Type: string; readonly Properties?: Record<string, unknown> }>
  >;
  readonly Outputs?: Readonly<Record<string, { readonly Value: unknown }>>;
}

interface Answer {
  readonly status: number;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

interface S3Request {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly contentType?: string | undefined;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function startDeployedByRequests(): Promise<DeployedByRequests> {
  const cloud = new Cloud();
  const server = createServer((request, response) => {
    void answered(cloud, request).then(({ status, body, headers }) => {
      response.writeHead(status, { 'x-amz-request-id': randomUUID(), ...headers });
      response.end(request.method === 'HEAD' ? undefined : body);
    });
  });
  const port = await listenOnLoopback(server);
  return Object.assign(cloud, {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

async function answered(cloud: Cloud, request: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = contentOf(request, Buffer.concat(chunks));
  const isQuery =
    request.method === 'POST' && String(request.headers['content-type']).includes('x-www-form-urlencoded');
  try {
    return isQuery ? cloud.query(new URLSearchParams(body.toString())) : cloud.s3(request, body);
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    const error = { Code: cause.code, Message: cause.message };
    const text = isQuery
      ? xmlElement('ErrorResponse', { Error: { Type: 'Sender', ...error }, RequestId: randomUUID() }, CLOUDFORMATION)
      : xmlElement('Error', error);
    return { status: cause.status, body: text, headers: { 'content-type': 'text/xml' } };
  }
}

/** Without the frames of a body that is signed in chunks. */
function contentOf(request: IncomingMessage, body: Buffer): Buffer {
  if (!String(request.headers['content-encoding']).includes('aws-chunked')) return body;
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const lineEnd = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.toString('latin1', at, lineEnd), 16);
    if (size === 0) break;
    parts.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
  return Buffer.concat(parts);
}

/** Error of each part of a bucket's configuration that was never set. */
const UNSET: Readonly<Record<string, string>> = {
  policy: 'NoSuchBucketPolicy',
  cors: 'NoSuchCORSConfiguration',
  website: 'NoSuchWebsiteConfiguration',
  lifecycle: 'NoSuchLifecycleConfiguration',
  replication: 'ReplicationConfigurationNotFoundError',
  encryption: 'ServerSideEncryptionConfigurationNotFoundError',
  'object-lock': 'ObjectLockConfigurationNotFoundError',
  publicAccessBlock: 'NoSuchPublicAccessBlockConfiguration',
  tagging: 'NoSuchTagSet',
};
/** What S3 answers instead where nothing was set. */
const EMPTY: Readonly<Record<string, string>> = {
  versioning: 'VersioningConfiguration',
  logging: 'BucketLoggingStatus',
  accelerate: 'AccelerateConfiguration',
};

class Cloud {
  readonly buckets = new Map<string, Bucket>();
  readonly stacks = new Map<string, DeployedStack>();
  readonly changes: string[] = [];
  readonly unknown: string[] = [];
  failure: string | undefined;

  s3(request: IncomingMessage, body: Buffer): Answer {
    const { pathname, searchParams } = new URL(String(request.url), 'http://s3');
    const [, name = '', ...rest] = pathname.split('/');
    const key = decodeURIComponent(rest.join('/'));
    const method = String(request.method);
    if (method === 'PUT' && key === '' && [...searchParams.keys()].length === 0) {
      if (this.buckets.has(name)) throw new Refusal(409, 'BucketAlreadyOwnedByYou', `${name} is there`);
      this.buckets.set(name, { objects: new Map(), settings: new Map() });
      return { status: 200, headers: { location: `/${name}` } };
    }
    const bucket = this.buckets.get(name);
    if (bucket === undefined) throw new Refusal(404, 'NoSuchBucket', 'The specified bucket does not exist');
    const found =
      key === ''
        ? this.#bucket(name, bucket, { method, query: searchParams, body })
        : this.#object(bucket, key, {
            method,
            query: searchParams,
            body,
            contentType: request.headers['content-type'],
          });
    if (found !== undefined) return found;
    this.unknown.push(`${method} ${request.url}`);
    throw new Refusal(501, 'NotImplemented', `${method} ${request.url}`);
  }

  #bucket(name: string, bucket: Bucket, { method, query, body }: S3Request): Answer | undefined {
    const setting = [...query.keys()].find((each) => each !== 'x-id' && each !== 'prefix') ?? '';
    if (method === 'HEAD') return { status: 200, headers: { 'x-amz-bucket-region': REGION } };
    if (method === 'DELETE' && setting === '') {
      if (bucket.objects.size > 0)
        throw new Refusal(409, 'BucketNotEmpty', 'The bucket you tried to delete is not empty');
      this.buckets.delete(name);
      return { status: 204 };
    }
    if (method === 'POST' && setting === 'delete') return this.#deleteListed(bucket, body.toString());
    if (method === 'GET' && setting === 'location') {
      return { status: 200, body: `<LocationConstraint xmlns="${S3}">${REGION}</LocationConstraint>` };
    }
    if (method === 'GET' && setting === 'acl') return { status: 200, body: ACL };
    if (method === 'GET' && setting === 'requestPayment') {
      return { status: 200, body: xmlElement('RequestPaymentConfiguration', { Payer: 'BucketOwner' }, S3) };
    }
    if (method === 'GET' && (setting === 'versions' || setting === 'list-type')) {
      const prefix = query.get('prefix') ?? '';
      const versions = [...bucket.objects]
        .filter(([key]) => key.startsWith(prefix))
        .flatMap(([key, all]) => all.map(({ versionId }) => ({ key, versionId })));
      const rows = versions.map(({ key, versionId }) =>
        xmlElement(setting === 'versions' ? 'Version' : 'Contents', { Key: key, VersionId: versionId }),
      );
      const root = setting === 'versions' ? 'ListVersionsResult' : 'ListBucketResult';
      return {
        status: 200,
        body: `<${root} xmlns="${S3}"><Name>${name}</Name><IsTruncated>false</IsTruncated>${rows.join('')}</${root}>`,
      };
    }
    if (!Object.hasOwn(UNSET, setting) && !Object.hasOwn(EMPTY, setting)) return undefined;
    if (method === 'PUT') bucket.settings.set(setting, body.toString());
    if (method === 'DELETE') bucket.settings.delete(setting);
    if (method !== 'GET') return { status: method === 'PUT' ? 200 : 204 };
    const set = bucket.settings.get(setting);
    if (set !== undefined) return { status: 200, body: set };
    if (Object.hasOwn(EMPTY, setting)) return { status: 200, body: xmlElement(EMPTY[setting]!, {}, S3) };
    throw new Refusal(404, UNSET[setting]!, 'It was not set');
  }

  #deleteListed(bucket: Bucket, text: string): Answer {
    for (const [, key = '', versionId = ''] of text.matchAll(/<Key>(.*?)<\/Key>(?:<VersionId>(.*?)<\/VersionId>)?/g)) {
      this.#deleteVersion(bucket, key, versionId);
    }
    return { status: 200, body: xmlElement('DeleteResult', {}, S3) };
  }

  #deleteVersion(bucket: Bucket, key: string, versionId: string): void {
    const left = (bucket.objects.get(key) ?? []).filter((one) => versionId !== '' && one.versionId !== versionId);
    if (left.length === 0) bucket.objects.delete(key);
    else bucket.objects.set(key, left);
    this.changes.push(`delete ${key}`);
  }

  #object(bucket: Bucket, key: string, { method, query, body, contentType }: S3Request): Answer | undefined {
    const versions = bucket.objects.get(key) ?? [];
    if (method === 'PUT' && query.get('x-id') === 'PutObject') {
      if (bucket.settings.get('versioning')?.includes('Enabled') !== true) {
        throw new Refusal(409, 'InvalidBucketState', `${key} is put before the bucket has versions`);
      }
      const versionId = randomUUID();
      bucket.objects.set(key, [
        ...versions,
        { versionId, bytes: body, contentType: contentType ?? 'binary/octet-stream' },
      ]);
      this.changes.push(`put ${key}`);
      return { status: 200, headers: { etag: etagOf(body), 'x-amz-version-id': versionId } };
    }
    if (method === 'DELETE') {
      this.#deleteVersion(bucket, key, query.get('versionId') ?? '');
      return { status: 204 };
    }
    const last = versions.at(-1);
    if (last === undefined) throw new Refusal(404, 'NoSuchKey', 'The specified key does not exist.');
    if (method === 'GET' && query.has('tagging')) {
      return { status: 200, body: xmlElement('Tagging', { TagSet: {} }, S3) };
    }
    if (method !== 'HEAD' && method !== 'GET') return undefined;
    const headers = {
      etag: etagOf(last.bytes),
      'content-length': String(last.bytes.length),
      'content-type': last.contentType,
      'x-amz-version-id': last.versionId,
      'x-amz-server-side-encryption': 'AES256',
    };
    return { status: 200, body: last.bytes, headers };
  }

  /** CloudFormation. */
  query(given: URLSearchParams): Answer {
    const action = String(given.get('Action'));
    const result = this.#query(action, given);
    if (result === undefined) {
      this.unknown.push(action);
      throw new Refusal(400, 'InvalidAction', `Could not find operation ${action}`);
    }
    const text = `<${action}Response xmlns="${CLOUDFORMATION}"><${action}Result>${result}</${action}Result></${action}Response>`;
    return { status: 200, body: text, headers: { 'content-type': 'text/xml' } };
  }

  #query(action: string, given: URLSearchParams): string | undefined {
    const name = String(given.get('StackName'));
    if (action === 'CreateStack') return this.#create(name, given);
    // A stack that was deleted is found by its id alone.
    const stack = [...this.stacks.values()].find(
      (each) => each.id === name || (nameOf(each) === name && each.status !== 'DELETE_COMPLETE'),
    );
    if (stack === undefined) throw new Refusal(400, 'ValidationError', `Stack with id ${name} does not exist`);
    if (action === 'UpdateStack') return this.#update(stack, given);
    if (action === 'DescribeStacks') return this.#described(stack);
    if (action === 'GetTemplate') return xmlElement('TemplateBody', stack.template);
    if (action === 'DescribeStackEvents') return eventsOf(stack);
    if (action !== 'DeleteStack') return undefined;
    this.#begin(stack, 'DELETE_IN_PROGRESS', 'DELETE_COMPLETE');
    return '';
  }

  #begin(stack: DeployedStack, status: string, done: string): void {
    this.changes.push(`${nameOf(stack)} ${status}`);
    stack.status = status;
    stack.pending = { left: DESCRIPTIONS_IN_PROGRESS, done };
  }

  #create(name: string, given: URLSearchParams): string {
    const old = this.stacks.get(name);
    if (old !== undefined && old.status !== 'DELETE_COMPLETE') {
      throw new Refusal(400, 'AlreadyExistsException', `Stack [${name}] already exists`);
    }
    const asked = this.#asked(given);
    const id = `arn:aws:cloudformation:${REGION}:${ACCOUNT}:stack/${name}/${randomUUID()}`;
    const stack: DeployedStack = { id, status: '', pending: undefined, reason: undefined, ...asked };
    this.stacks.set(name, stack);
    stack.reason = this.#missing(asked);
    this.#begin(stack, 'CREATE_IN_PROGRESS', stack.reason === undefined ? 'CREATE_COMPLETE' : 'ROLLBACK_COMPLETE');
    return xmlElement('StackId', id);
  }

  #update(stack: DeployedStack, given: URLSearchParams): string {
    if (stack.pending !== undefined) {
      throw new Refusal(
        400,
        'ValidationError',
        `Stack:${stack.id} is in ${stack.status} state and can not be updated.`,
      );
    }
    const asked = this.#asked(given);
    const before = { ...stack };
    const same = asked.template === before.template && equal(asked.parameters, before.parameters);
    if (same && equal(asked.tags, before.tags)) {
      throw new Refusal(400, 'ValidationError', 'No updates are to be performed.');
    }
    stack.reason = this.#missing(asked);
    const failed = stack.reason !== undefined;
    if (!failed) Object.assign(stack, asked);
    this.#begin(stack, 'UPDATE_IN_PROGRESS', failed ? 'UPDATE_ROLLBACK_COMPLETE' : 'UPDATE_COMPLETE');
    return xmlElement('StackId', stack.id);
  }

  /** What a request asks for. Throws for what CloudFormation refuses at once. */
  #asked(given: URLSearchParams): Pick<DeployedStack, 'parameters' | 'outputs' | 'template' | 'code' | 'tags'> {
    const bytes = this.#read(String(given.get('TemplateURL')));
    if (bytes === undefined) {
      throw new Refusal(400, 'ValidationError', 'S3 error: The specified key does not exist.');
    }
    const template = JSON.parse(bytes.toString()) as Template;
    const declared = template.Parameters ?? {};
    const passed = pairsOf(given, 'Parameters', 'ParameterKey', 'ParameterValue');
    const extra = Object.keys(passed).filter((name) => !Object.hasOwn(declared, name));
    if (extra.length > 0) {
      throw new Refusal(400, 'ValidationError', `Parameters: [${extra.join(', ')}] do not exist in the template`);
    }
    const parameters = Object.fromEntries(
      Object.entries(declared).map(([name, { Default }]) => [name, passed[name] ?? Default]),
    );
    const without = Object.keys(parameters).filter((name) => parameters[name] === undefined);
    if (without.length > 0) {
      throw new Refusal(400, 'ValidationError', `Parameters: [${without.join(', ')}] must have values`);
    }
    for (const [name, { AllowedPattern: pattern }] of Object.entries(declared)) {
      if (pattern !== undefined && !new RegExp(`^(?:${pattern})$`).test(parameters[name]!)) {
        const why = 'failed to satisfy constraint: Member must satisfy regular expression pattern';
        throw new Refusal(400, 'ValidationError', `Parameter ${name} ${why}: ${pattern}`);
      }
    }
    const types = new Set(Object.values(template.Resources).map(({ Type }) => Type));
    const may = [...given].some(
      ([name, value]) => name.startsWith('Capabilities.') && /^CAPABILITY_(NAMED_)?IAM$/.test(value),
    );
    if (types.has('AWS::IAM::Role') && !may) {
      throw new Refusal(400, 'InsufficientCapabilitiesException', 'Requires capabilities : [CAPABILITY_IAM]');
    }
    const values = parameters as Record<string, string>;
    return {
      template: bytes.toString(),
      parameters: values,
      outputs: Object.fromEntries(Object.keys(template.Outputs ?? {}).map((name) => [name, `the ${name}`])),
      code: codeOf(template, values),
      tags: pairsOf(given, 'Tags', 'Key', 'Value'),
    };
  }

  /** Why a stack like this cannot be made. */
  #missing(asked: Pick<DeployedStack, 'code' | 'parameters'>): string | undefined {
    return this.#absentCode(asked) ?? this.failure;
  }

  #absentCode({ code, parameters }: Pick<DeployedStack, 'code' | 'parameters'>): string | undefined {
    const objects = this.buckets.get(String(parameters['CodeBucket']))?.objects;
    const absent = code.find((key) => objects?.has(key) !== true);
    return absent === undefined ? undefined : `Error occurred while GetObject. S3 Error Code: NoSuchKey: ${absent}`;
  }

  #described(stack: DeployedStack): string {
    const { pending } = stack;
    if (pending !== undefined) {
      pending.left -= 1;
      if (pending.left <= 0) {
        // Lambda reads the code while the stack is made, and again while it rolls back to the former one.
        const reason = pending.done === 'DELETE_COMPLETE' ? undefined : this.#absentCode(stack);
        stack.reason ??= reason;
        stack.status = reason === undefined ? pending.done : pending.done.replace('COMPLETE', 'FAILED');
        stack.pending = undefined;
        this.changes.push(`${nameOf(stack)} ${stack.status}`);
      }
    }
    const list = (values: Readonly<Record<string, string>>, key: string, value: string): string =>
      Object.entries(values)
        .map(([name, text]) => `<member>${xmlElement(key, name)}${xmlElement(value, text)}</member>`)
        .join('');
    const fields: XmlValue = {
      StackName: nameOf(stack),
      StackId: stack.id,
      CreationTime: '2026-01-01T00:00:00Z',
      StackStatus: stack.status,
      StackStatusReason: stack.reason,
      DisableRollback: false,
    };
    const lists = [
      `<Capabilities><member>CAPABILITY_IAM</member></Capabilities>`,
      `<Outputs>${list(stack.outputs, 'OutputKey', 'OutputValue')}</Outputs>`,
      `<Parameters>${list(stack.parameters, 'ParameterKey', 'ParameterValue')}</Parameters>`,
      `<Tags>${list(stack.tags, 'Key', 'Value')}</Tags>`,
    ].join('');
    const member = xmlElement('member', fields).replace(/<\/member>$/, `${lists}</member>`);
    return `<Stacks>${member}</Stacks>`;
  }

  /** https://BUCKET.s3.REGION.amazonaws.com/KEY */
  #read(url: string): Buffer | undefined {
    const { hostname, pathname } = new URL(url);
    const [, name = ''] = /^(.*)\.s3\.[a-z0-9-]+\.amazonaws\.com$/.exec(hostname) ?? [];
    return this.buckets
      .get(name)
      ?.objects.get(decodeURIComponent(pathname.slice(1)))
      ?.at(-1)?.bytes;
  }
}

const REGION = 'eu-central-1';
const OWNER = 'owner';
const GRANTEE = `<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser"><ID>${OWNER}</ID></Grantee>`;
const ACL = `<AccessControlPolicy xmlns="${S3}"><Owner><ID>${OWNER}</ID></Owner><AccessControlList><Grant>${GRANTEE}<Permission>FULL_CONTROL</Permission></Grant></AccessControlList></AccessControlPolicy>`;

const etagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`;
const nameOf = (stack: DeployedStack): string => String(stack.id.split('/')[1]);
const equal = (one: object, other: object): boolean =>
  JSON.stringify(Object.entries(one).toSorted()) === JSON.stringify(Object.entries(other).toSorted());

function eventsOf({ id, status, reason }: DeployedStack): string {
  const event = { StackId: id, EventId: randomUUID(), StackName: 'x', LogicalResourceId: 'x', ResourceStatus: status };
  const fields = { ...event, ResourceStatusReason: reason, Timestamp: '2026-01-01T00:00:00Z' };
  return `<StackEvents>${xmlElement('member', fields)}</StackEvents>`;
}

/** `PREFIX.member.N.KEY` and its value. */
function pairsOf(given: URLSearchParams, prefix: string, key: string, value: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const [name, text] of given) {
    if (!name.startsWith(`${prefix}.member.`) || !name.endsWith(`.${key}`)) continue;
    pairs[text] = given.get(name.replace(new RegExp(`${key}$`), value)) ?? '';
  }
  return pairs;
}

/** Where its functions' code is, with the parameters in place. */
function codeOf(template: Template, parameters: Readonly<Record<string, string>>): string[] {
  return Object.values(template.Resources)
    .filter(({ Type }) => Type === 'AWS::Lambda::Function')
    .map(({ Properties: { Code } = {} }) => {
      const { S3Key } = Code as { S3Key: { 'Fn::Sub': string } };
      return S3Key['Fn::Sub'].replace(/\$\{(\w+)\}/g, (_, name: string) => String(parameters[name]));
    });
}
