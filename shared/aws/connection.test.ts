import { RegionInfo } from 'aws-cdk-lib/region-info';
import { describe, expect, it } from 'vitest';
import { awsConnectionFrom, awsHost, endpointOf } from './connection.ts';

describe('the connection of a Lambda', () => {
  const environment = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };

  it('comes from the environment, with session token and replaced endpoint', () => {
    const more = { AWS_SESSION_TOKEN: 'c', AWS_ENDPOINT_URL_EC2: 'http://e', AWS_ENDPOINT_URL_DYNAMODB: 'http://d' };
    expect(awsConnectionFrom({ ...environment, ...more }, 'AWS_ENDPOINT_URL_EC2')).toEqual({
      region: 'eu-west-1',
      endpoint: 'http://e',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: 'c' },
    });
  });

  it('has no session token and no endpoint if the variables are absent or empty', () => {
    expect(awsConnectionFrom({ ...environment, AWS_SESSION_TOKEN: '' }, 'AWS_ENDPOINT_URL_EC2')).toEqual({
      region: 'eu-west-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    });
  });

  it('names all missing variables at once', () => {
    expect(() => awsConnectionFrom({ AWS_REGION: 'x' }, 'AWS_ENDPOINT_URL_EC2')).toThrow(
      new RangeError('missing from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY'),
    );
  });
});

describe('the endpoint of a service', () => {
  it('is its host in the region', () => {
    expect(endpointOf({ region: 'eu-west-1' }, 'logs').href).toBe('https://logs.eu-west-1.amazonaws.com/');
  });

  it.each([
    'us-east-1',
    'cn-north-1',
    'us-gov-west-1',
    'us-iso-east-1',
    'us-isob-east-1',
    'eu-isoe-west-1',
    'us-isof-south-1',
    'eusc-de-east-1',
  ])('has the domain of the partition: %s', (region) => {
    expect(awsHost('sts', region)).toBe(`sts.${region}.${RegionInfo.get(region).domainSuffix}`);
  });

  it('is the replaced endpoint if there is one', () => {
    expect(endpointOf({ region: 'eu-west-1', endpoint: 'http://127.0.0.1:8000' }, 'logs').host).toBe('127.0.0.1:8000');
  });
});
