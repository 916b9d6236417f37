import { describe, expect, it } from 'vitest';
import { parseServeOptions } from './options.ts';

describe('the options of serve', () => {
  it('are a cluster on loopback in .nodekeeper, without a demonstration', () => {
    expect(parseServeOptions([])).toEqual({
      help: false,
      service: undefined,
      dataDirectory: '.nodekeeper',
      isDataNamed: false,
      host: '127.0.0.1',
      port: 6443,
      names: [],
      clientCaFile: undefined,
      tokensFile: undefined,
      certificate: undefined,
      clusterId: 'nodekeeper',
      tables: undefined,
      printsPolicy: false,
      controllers: true,
      policyFile: undefined,
      synchronous: 'full',
      log: { format: 'plain', level: 'info' },
      quiet: false,
      demo: undefined,
      upstream: undefined,
    });
  });

  it('add the address that they listen at to the certificate', () => {
    const { host, names } = parseServeOptions([
      '--listen',
      '192.0.2.7',
      '--tokens',
      't.json',
      '--name',
      'edge.example',
    ]);
    expect([host, names]).toEqual(['192.0.2.7', ['192.0.2.7', 'edge.example']]);
  });

  it('of a deployed stack leave the work to its functions', () => {
    expect(parseServeOptions(['--store', 'dynamodb', '--region', 'eu-west-1', '--cluster-id', 'west'])).toMatchObject({
      tables: { region: 'eu-west-1', stack: 'Nodekeeper', clusterId: 'west' },
      controllers: false,
    });
  });

  it('of a demonstration are those of npm start', () => {
    expect(parseServeOptions(['--demo']).demo).toEqual({ nodes: 6, zones: 3, ec2Nodes: 2, console: true });
    expect(parseServeOptions(['--demo', '--no-fleet', '--no-console']).demo).toMatchObject({
      nodes: 0,
      console: false,
    });
  });

  it('of a hub name its cluster, and need no users of their own to listen elsewhere', () => {
    const args = ['--upstream', 'https://192.0.2.7:6443', '--upstream-token', 't', '--listen', '0.0.0.0'];
    expect(parseServeOptions(args)).toMatchObject({
      host: '0.0.0.0',
      upstream: { url: new URL('https://192.0.2.7:6443'), tokenFile: 't', certificate: undefined, caFile: undefined },
    });
  });

  it.each([
    [['--data', 'x', '--ephemeral'], '--ephemeral and --data exclude each other'],
    [['--upstream', 'http://192.0.2.7', '--upstream-token', 't'], '--upstream must be an https URL'],
    [['--upstream', 'https://192.0.2.7'], '--upstream needs --upstream-token FILE, or --upstream-cert FILE'],
    [['--upstream-token', 't'], 'need --upstream'],
    [['--upstream', 'https://a', '--upstream-cert', 'c'], '--upstream-cert and --upstream-key need each other'],
    [['--upstream', 'https://a', '--no-controllers'], '--upstream and --no-controllers exclude each other'],
    [['--upstream', 'https://a', '--client-ca', 'c'], '--upstream and --client-ca exclude each other'],
    [['--upstream', 'https://a', '--cluster-id', 'c'], '--upstream and --cluster-id exclude each other'],
    [['--listen', 'edge'], '--listen must be an IP address, not edge'],
    [['--listen', '0.0.0.0'], '--listen 0.0.0.0 is possible only with --tokens FILE or --client-ca FILE'],
    [['--listen', '0.0.0.0', '--tokens', 'f', '--demo'], 'only without --demo'],
    [['--tokens', 'f', '--demo'], '--tokens and --demo exclude each other'],
    [['--port', '70000'], '--port must be a whole number from 0 to 65535, not 70000'],
    [['--tls-cert', 'c.pem'], '--tls-cert and --tls-key need each other'],
    [['--cluster-id', 'My Cluster'], '--cluster-id must be lower-case letters'],
    [['--synchronous', 'off'], '--synchronous must be full or normal, not off'],
    [['--log', 'xml'], '--log must be plain or json, not xml'],
    [['--log-level', 'loud'], '--log-level must be debug, info, warn, error, not loud'],
    [['--nodes', '3'], '--nodes needs --demo'],
    [['--no-fleet'], '--no-fleet needs --demo'],
    [['--demo', '--nodes', '1', '--ec2-nodes', '2'], '--ec2-nodes 2: there are only 1 machines'],
    [['--install', '--uninstall'], '--install and --uninstall exclude each other'],
    [['--stack', 'S'], '--stack needs --store dynamodb'],
    [['--print-policy'], '--print-policy needs --store dynamodb'],
    [['--store', 'dynamodb', '--region', 'here'], '--store dynamodb needs --region, such as eu-west-1'],
    [['--store', 'dynamodb', '--region', 'eu-west-1', '--stack', '7'], '--stack 7 is not a valid stack name'],
    [['--store', 'dynamodb', '--region', 'eu-west-1', '--demo'], '--store dynamodb excludes --demo'],
    [['--store', 'mysql'], '--store must be sqlite or dynamodb, not mysql'],
    [['--frob'], "Unknown option '--frob'"],
  ])('%j is refused in one line', (args, message) => {
    expect(() => parseServeOptions(args)).toThrow(
      expect.objectContaining({ name: 'StartError', message: expect.stringContaining(message) }),
    );
  });
});
