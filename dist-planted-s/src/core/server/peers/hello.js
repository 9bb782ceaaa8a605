import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { PeerHelloSchema, PeerWelcomeSchema } from "../../gen/leasehold/peer_pb.js";
import { idText } from "../identity.js";
/** 2: commands of the log have come to mean more (space alarms), and all servers have to apply them alike. */
const version = 2;
export function helloBytes(self, to, snapshot) {
    const { cluster, id, name, disk, clientUrls } = self;
    const hello = { version, cluster, from: id, to, snapshot, name, disk, clientURLs: [...clientUrls] };
    return toBinary(PeerHelloSchema, create(PeerHelloSchema, hello));
}
export function readHello(bytes) {
    return fromBinary(PeerHelloSchema, bytes);
}
export function welcomeBytes({ disk }, refusal) {
    return toBinary(PeerWelcomeSchema, create(PeerWelcomeSchema, { version, refusal, disk }));
}
/** Why it refuses us, empty if it does not; and which disk it has. */
export function readWelcome(bytes) {
    return fromBinary(PeerWelcomeSchema, bytes);
}
/** Why we do not talk to whoever says this; empty if we do. */
export function refusalOf(hello, self, isMember) {
    if (hello.version !== version)
        return `it speaks version ${hello.version} of the protocol between servers, and this one ${version}`;
    if (hello.cluster !== self.cluster)
        return `its cluster id is ${idText(hello.cluster)}, and ours is ${idText(self.cluster)}`;
    if (hello.to !== self.id)
        return `it looks for the server ${idText(hello.to)}, and this is ${idText(self.id)}: is an address wrong?`;
    if (!isMember)
        return `the server ${idText(hello.from)} is no member of this cluster`;
    return "";
}
