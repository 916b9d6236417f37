import { describe, expect, it } from 'vitest';
import { createResolver, type PhysicalNames } from './intrinsics.ts';
import type { Template } from './template.ts';

const physical: PhysicalNames = {
  ref: (id, resource) => (resource.Type === 'AWS::DynamoDB::Table' ? `table-${id}` : undefined),
  attribute: (id, _resource, name) => (name === 'Arn' ? `arn:${id}` : undefined),
};

function resolverFor(value: unknown, more: Partial<Template> = {}, parameters: Record<string, string> = {}) {
  const template: Template = {
    Parameters: {
      Tokens: { Type: 'String', Default: '[]' },
      Count: { Type: 'Number', Default: 3 },
      Bare: { Type: 'String' },
    },
    ...more,
    Resources: {
      Health: { Type: 'AWS::DynamoDB::Table' },
      Odd: { Type: 'AWS::Odd::Thing' },
      X: { Type: 'T', Properties: { value } },
    },
  };
  const pseudoParameters = { 'AWS::Region': 'us-east-1', 'AWS::Partition': 'aws' };
  return createResolver({ template, physical, pseudoParameters, parameters });
}

const resolve = (...args: Parameters<typeof resolverFor>) => resolverFor(...args).properties('X')['value'];

/** A placeholder of Fn::Sub, in a spelling that no linter mistakes for a template string. */
const hole = (name: string) => `$\{${name}}`;

describe('intrinsic functions', () => {
  it.each([
    ['a plain value', { a: [1, true, 'x', null] }, { a: [1, true, 'x', null] }],
    ['Ref of a resource', { Ref: 'Health' }, 'table-Health'],
    ['Ref of a pseudo parameter', { Ref: 'AWS::Region' }, 'us-east-1'],
    ['Ref of a parameter by its default', { Ref: 'Tokens' }, '[]'],
    ['a number parameter', { Ref: 'Count' }, 3],
    ['GetAtt as a list', { 'Fn::GetAtt': ['Health', 'Arn'] }, 'arn:Health'],
    ['GetAtt as a dotted text', { 'Fn::GetAtt': 'Health.Arn' }, 'arn:Health'],
    ['Join', { 'Fn::Join': ['/', ['a', { Ref: 'Health' }, 1]] }, 'a/table-Health/1'],
    ['Split and Select', { 'Fn::Select': [1, { 'Fn::Split': [':', { 'Fn::GetAtt': ['Health', 'Arn'] }] }] }, 'Health'],
    [
      'Sub',
      { 'Fn::Sub': `a-${hole('AWS::Region')}-${hole('Health')}-${hole('Health.Arn')}-${hole('!kept')}` },
      `a-us-east-1-table-Health-arn:Health-${hole('kept')}`,
    ],
    ['Sub with variables', { 'Fn::Sub': [`${hole('v')}!`, { v: { Ref: 'Health' } }] }, 'table-Health!'],
  ])('works out %s', (_name, value, expected) => {
    expect(resolve(value)).toEqual(expected);
  });

  it('prefers a given parameter to its default', () => {
    expect(resolve({ Ref: 'Tokens' }, {}, { Tokens: '[1]' })).toBe('[1]');
  });

  it('drops properties and entries without a value', () => {
    expect(resolve({ a: { Ref: 'AWS::NoValue' }, b: [{ Ref: 'AWS::NoValue' }, 1] })).toEqual({ b: [1] });
  });

  it('chooses by condition', () => {
    const Conditions = {
      Here: { 'Fn::Equals': [{ Ref: 'AWS::Region' }, 'us-east-1'] },
      Never: { 'Fn::And': [{ Condition: 'Here' }, { 'Fn::Not': [{ 'Fn::Or': [{ Condition: 'Here' }] }] }] },
    };
    expect(resolve({ 'Fn::If': ['Here', 'yes', 'no'] }, { Conditions })).toBe('yes');
    expect(resolve({ 'Fn::If': ['Never', 'yes', 'no'] }, { Conditions })).toBe('no');
  });

  it('looks up a mapping', () => {
    expect(
      resolve(
        { 'Fn::FindInMap': ['M', { Ref: 'AWS::Region' }, 'k'] },
        { Mappings: { M: { 'us-east-1': { k: 'v' } } } },
      ),
    ).toBe('v');
  });

  it.each([
    [{ Ref: 'Nothing' }, /X \(T\)\.value: Ref to Nothing/],
    [{ Ref: 'Odd' }, /X \(T\)\.value: Ref to Odd \(AWS::Odd::Thing\) has no local counterpart/],
    [{ Ref: 'Bare' }, /parameter Bare has neither/],
    [{ 'Fn::GetAtt': ['Health', 'Colour'] }, /Health\.Colour/],
    [{ 'Fn::ImportValue': 'x' }, /X \(T\)\.value: Fn::ImportValue is not supported/],
    [{ deep: [{ 'Fn::Cidr': [] }] }, /X \(T\)\.value\.deep\[0\]: Fn::Cidr/],
  ])('refuses what it does not know, naming the resource: %j', (value, message) => {
    expect(() => resolve(value)).toThrow(message);
  });
});
