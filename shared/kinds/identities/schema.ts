import {
  bool,
  embedded,
  int32,
  kindStruct,
  list,
  optionalStruct,
  pointer,
  required,
  type StructSchema,
  struct,
  text,
  textMap,
  time,
} from '../../kubernetes/schema.ts';
import { IDENTITY_GROUP } from '../identities/resource.ts';
import { metadata } from '../upstream.ts';

const OURS = 'dev.nodekeeper.v1alpha1';
const gvk = (kind: string) => ({ group: IDENTITY_GROUP, version: 'v1alpha1', kind });

const publicKey = struct(`${OURS}.PublicKey`, 'A JSON Web Key (RFC 7517) of P-256 or Ed25519, public members only.', {
  kty: required(text('EC or OKP.')),
  crv: required(text('P-256 for EC, Ed25519 for OKP.')),
  x: required(text('First coordinate, base64url.')),
  y: text('Second coordinate, base64url; of EC keys.'),
});

const nodeKey = struct(`${OURS}.NodeKey`, 'A key that may sign in as the node.', {
  keyId: text('JWK thumbprint (RFC 7638, SHA-256): the kid of tokens signed with the key.'),
  publicKey: optionalStruct(publicKey, 'The key.'),
  addedAt: pointer(time('When the key was added.')),
});

export const nodeIdentity: StructSchema = kindStruct(
  `${OURS}.NodeIdentity`,
  gvk('NodeIdentity'),
  'The keys that may sign in as the node of the same name. Deleting it revokes them all.',
  {
    metadata,
    spec: embedded(
      struct(`${OURS}.NodeIdentitySpec`, 'Keys, and how they came to be.', {
        publicKey: optionalStruct(publicKey, 'On creation only: the key to add.'),
        keys: list(nodeKey, 'The keys, two at most. Set by the server.'),
        nodeLabels: textMap('Labels the machine is to register its Node with.'),
        source: text('How the identity was enrolled: bootstraptoken/ID, instance/ID or user/NAME. Set by the server.'),
      }),
      'Keys, and how they came to be.',
    ),
  },
);

export const bootstrapToken: StructSchema = kindStruct(
  `${OURS}.BootstrapToken`,
  gvk('BootstrapToken'),
  'A permission to enrol machines. Its name is the id of the token; the secret is not kept, only its hash.',
  {
    metadata,
    spec: required(
      embedded(
        struct(`${OURS}.BootstrapTokenSpec`, 'What the token permits. Cannot change.', {
          secretSha256: required(text('SHA-256 of the secret, lower-case hex. Not shown again.')),
          expires: required(pointer(time('When it ends.'))),
          uses: pointer(int32('Machines it enrols; 1 if left out.')),
          nodeNamePattern: text('Names it enrols: * for any characters, ? for one. All, if left out.'),
          nodeLabels: textMap('Labels the machines are to register with.'),
          reissue: bool('Whether it may replace the keys of a name that has an identity.'),
        }),
        'What the token permits.',
      ),
    ),
    status: embedded(
      struct(`${OURS}.BootstrapTokenStatus`, 'What became of it.', {
        usesLeft: pointer(int32('Machines it still enrols.')),
      }),
      'What became of it.',
    ),
  },
);
