/** The evaluation of calls against policies, on small examples: the basis of `npm run iam-proof`. */
import { describe, expect, it } from 'vitest';
import type { CountedCall } from '../../aws-local/calls/recorder.ts';
import { type Call, decide } from '../../scripts/iam/evaluate.ts';
import type { Exception } from '../../scripts/iam/exceptions.ts';
import { PolicyError, rolePolicies, type Statement } from '../../scripts/iam/role-policies.ts';
import { tableOf } from '../../scripts/iam/table.ts';
import { judge } from '../../scripts/iam/verdicts.ts';

const TABLE = 'arn:aws:dynamodb:us-east-1:000000000000:table/T';
const allow = (more: Partial<Statement> = {}): Statement => ({
  effect: 'Allow',
  actions: ['dynamodb:GetItem'],
  resources: [TABLE],
  conditions: {},
  ...more,
});
const call = (more: Partial<Call> = {}): Call => ({
  action: 'dynamodb:GetItem',
  resource: TABLE,
  context: {},
  ...more,
});
const kindOf = (statements: readonly Statement[], of: Call) => decide(statements, of).kind;
const leading = (keys: string[]) => ({
  'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': keys },
  Null: { 'dynamodb:LeadingKeys': ['false'] },
});

describe('a call evaluated against the policies of a role', () => {
  it('needs a statement with its action and its resource', () => {
    expect(kindOf([], call())).toBe('notAllowed');
    expect(kindOf([allow()], call())).toBe('allowed');
    expect(kindOf([allow()], call({ action: 'dynamodb:PutItem' }))).toBe('notAllowed');
    expect(kindOf([allow()], call({ resource: `${TABLE}/index/I` }))).toBe('notAllowed');
  });

  it('matches wildcards in actions and resources, and actions in any case', () => {
    expect(kindOf([allow({ actions: ['DynamoDB:get*'] })], call())).toBe('allowed');
    expect(kindOf([allow({ resources: ['arn:aws:dynamodb:*:table/?'] })], call())).toBe('allowed');
    expect(kindOf([allow({ resources: ['arn:aws:dynamodb:*:table/??'] })], call())).toBe('notAllowed');
    expect(kindOf([allow({ resources: [TABLE.replaceAll(':', '.')] })], call())).toBe('notAllowed');
  });

  it('is refused by one Deny, whatever allows it', () => {
    expect(kindOf([allow(), allow({ effect: 'Deny', actions: ['*'], resources: ['*'] })], call())).toBe('denied');
  });

  it('must satisfy the condition of the statement', () => {
    const held = [allow({ conditions: { StringEquals: { 'ec2:Region': ['us-east-1'] } } })];
    expect(kindOf(held, call({ context: { 'EC2:region': 'us-east-1' } }))).toBe('allowed');
    expect(kindOf(held, call({ context: { 'ec2:Region': 'eu-west-1' } }))).toBe('notAllowed');
    expect(kindOf(held, call())).toBe('notAllowed');
  });

  it('may use only the partitions of a statement as leading keys', () => {
    const held = [allow({ conditions: leading(['node-keys#*', 'fleet']) })];
    const leadingWith = (keys: string | string[]) => call({ context: { 'dynamodb:LeadingKeys': keys } });
    expect(kindOf(held, leadingWith('node-keys#07'))).toBe('allowed');
    expect(kindOf(held, leadingWith(['node-keys#07', 'fleet']))).toBe('allowed');
    expect(kindOf(held, leadingWith(['fleet', 'bootstrap-tokens']))).toBe('notAllowed');
    expect(kindOf(held, call())).toBe('notAllowed');
    // ForAllValues alone is true without values, as in IAM.
    const { Null: _, ...open } = leading(['fleet']);
    expect(kindOf([allow({ conditions: open })], call())).toBe('allowed');
  });

  it('is refused with an error for an unknown condition operator', () => {
    const held = [allow({ conditions: { NumericLessThan: { 'x:y': ['1'] } } })];
    expect(() => decide(held, call({ context: { 'x:y': '0' } }))).toThrow(PolicyError);
  });
});

describe('policies of a template', () => {
  const template = (statement: object, role: object = {}) => ({
    stackName: 'S',
    template: {
      Resources: {
        T: { Type: 'AWS::DynamoDB::Table', Properties: {} },
        R: { Type: 'AWS::IAM::Role', Properties: role },
        P: {
          Type: 'AWS::IAM::Policy',
          Properties: { Roles: [{ Ref: 'R' }], PolicyDocument: { Statement: [statement] } },
        },
        F: {
          Type: 'AWS::Lambda::Function',
          Properties: {
            Role: { 'Fn::GetAtt': ['R', 'Arn'] },
            Environment: { Variables: { POWERTOOLS_SERVICE_NAME: 'fn' } },
          },
        },
      },
    },
  });
  const place = { region: 'us-east-1', accountId: '000000000000' };
  const read = (...of: Parameters<typeof template>) => rolePolicies(template(...of) as never, place);
  const statement = { Effect: 'Allow', Action: 'dynamodb:GetItem', Resource: { 'Fn::GetAtt': ['T', 'Arn'] } };

  it('are those of the role of each function, with the names of local mode', () => {
    expect(read(statement).get('fn')).toEqual([
      allow({ resources: ['arn:aws:dynamodb:us-east-1:000000000000:table/S-T'] }),
    ]);
  });

  it.each([
    ['a managed policy', statement, { ManagedPolicyArns: ['arn:aws:iam::aws:policy/AdministratorAccess'] }],
    ['actions by exclusion', { ...statement, NotAction: 'iam:*' }, {}],
  ])('are refused as unreadable with %s', (_what, of, role) => {
    expect(() => read(of, role)).toThrow(PolicyError);
  });
});

describe('grants compared with calls', () => {
  const made = (more: Partial<CountedCall> = {}): CountedCall => ({
    functionName: 'fn',
    by: 'function',
    action: 'dynamodb:GetItem',
    resource: TABLE,
    context: {},
    count: 2,
    ...more,
  });
  const verdictsOf = (statements: Statement[], calls: CountedCall[], exceptions: Exception[] = []) =>
    judge(new Map([['fn', statements]]), calls, exceptions);
  const exception = (more: Partial<Exception> = {}): Exception => ({
    functions: ['fn'],
    actions: ['dynamodb:Query'],
    resource: 'table/T',
    reason: 'rare',
    ...more,
  });

  it('match when each grant is used and each call is allowed', () => {
    const verdicts = verdictsOf([allow()], [made()]);
    expect(verdicts).toMatchObject({ ok: true, rows: [{ verdict: 'used', used: 2 }] });
  });

  it('report calls that are not allowed, and grants that are never used', () => {
    const verdicts = verdictsOf(
      [allow({ actions: ['dynamodb:Query', 'dynamodb:GetItem'] })],
      [made(), made({ action: 'dynamodb:PutItem', context: { 'dynamodb:LeadingKeys': 'o#pods#01' } })],
    );
    expect(verdicts.ok).toBe(false);
    expect(verdicts.rows.map(({ action, verdict }) => [action, verdict])).toEqual([
      ['dynamodb:GetItem', 'used'],
      ['dynamodb:PutItem', 'missing'],
      ['dynamodb:Query', 'surplus'],
    ]);
    expect(tableOf(verdicts)).toContain('1 missing, 1 surplus');
  });

  it('require the use of every partition that a statement names', () => {
    const statements = [allow({ conditions: leading(['fleet', 'cloud']) })];
    const verdicts = verdictsOf(statements, [made({ context: { 'dynamodb:LeadingKeys': 'fleet' } })]);
    expect(verdicts.rows).toMatchObject([
      { partition: 'cloud', verdict: 'surplus' },
      { partition: 'fleet', verdict: 'used' },
    ]);
  });

  it('may stay unused where an exception states the reason, as long as the grant exists', () => {
    const both = allow({ actions: ['dynamodb:Query', 'dynamodb:GetItem'] });
    expect(verdictsOf([both], [made()], [exception()])).toMatchObject({ ok: true, stale: [] });
    expect(verdictsOf([allow()], [made()], [exception()])).toMatchObject({ ok: false, stale: [exception()] });
    expect(verdictsOf([both], [made()], [exception({ resource: 'table/X' })]).ok).toBe(false);
  });
});
