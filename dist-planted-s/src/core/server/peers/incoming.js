import { RestoringState } from "../../state/snapshot.js";
import { finishInTurns } from "../turns.js";
import { decodeMessage } from "./codec.js";
import { Frames, frame, frameBytesMax } from "./frames.js";
import { readHello, welcomeBytes } from "./hello.js";
function newTransfer() {
    return { message: undefined, pieces: [], restoring: new RestoringState(), isEnding: false };
}
/** One connection that another server has made. */
export class Incoming {
    #socket;
    #handler;
    #frames = new Frames((body) => this.#take(body));
    #hello;
    #isAdmitted = false;
    #transfer;
    #self;
    #greeting;
    /** Whoever has not said within `helloMs` who it is, or says nothing for `silenceMs`, is not there. */
    constructor(self, socket, handler, { helloMs, silenceMs }) {
        this.#self = self;
        this.#socket = socket;
        this.#handler = handler;
        this.#greeting = setTimeout(() => socket.destroy(), helloMs);
        socket.setTimeout(silenceMs, () => socket.destroy());
        socket.on("close", () => clearTimeout(this.#greeting));
        socket.on("error", () => socket.destroy());
        socket.on("data", (chunk) => this.#receive(chunk));
    }
    #receive(chunk) {
        try {
            this.#frames.push(chunk);
        }
        catch (error) {
            this.#fail(error);
        }
        // One chunk of a snapshot in each turn of the event loop.
        if (this.#transfer === undefined || this.#socket.destroyed)
            return;
        this.#socket.pause();
        setImmediate(() => this.#socket.resume());
    }
    #fail(error) {
        this.#handler.trouble(`${this.#who}: ${error.message}`);
        this.#socket.destroy();
    }
    #take(body) {
        if (this.#hello === undefined)
            this.#greet(readHello(body));
        else if (!this.#isAdmitted)
            throw new RangeError("it went on before it was welcome");
        else if (this.#transfer !== undefined)
            this.#takePiece(this.#transfer, body);
        else if (body.length === 0)
            this.#socket.write(Buffer.concat(frame([])));
        else
            this.#takeMessage(decodeMessage(body));
    }
    #greet(hello) {
        this.#hello = hello;
        const refusal = this.#handler.judge(hello);
        if (refusal === "")
            this.#admit(hello);
        else
            this.#refuse(refusal);
    }
    #admit(hello) {
        this.#isAdmitted = true;
        clearTimeout(this.#greeting);
        this.#handler.admitted(hello);
        this.#frames.bytesMax = frameBytesMax;
        if (hello.snapshot)
            this.#transfer = newTransfer();
        this.#answer("");
    }
    #refuse(refusal) {
        this.#handler.trouble(`${this.#who} was refused: ${refusal}`);
        this.#socket.end(Buffer.concat(frame([welcomeBytes(this.#self, refusal)])));
    }
    #takeMessage(message) {
        if (message.from !== this.#hello.from)
            throw new RangeError("it speaks for another server");
        if (message.kind === "snapshot")
            throw new RangeError("a snapshot came without its content");
        this.#handler.message(message);
    }
    #takePiece(transfer, body) {
        if (transfer.message === undefined) {
            const message = decodeMessage(body);
            if (message.kind !== "snapshot" || message.from !== this.#hello.from)
                throw new RangeError("it sends no snapshot of its own");
            transfer.message = message;
        }
        else if (transfer.isEnding)
            throw new RangeError("it went on before its snapshot was taken");
        else if (body.length > 0) {
            const piece = new Uint8Array(body);
            transfer.pieces.push(piece);
            transfer.restoring.take(piece);
        }
        else
            this.#finish(transfer, transfer.message);
    }
    #finish(transfer, message) {
        transfer.isEnding = true;
        finishInTurns(transfer.restoring.finish()).then((state) => {
            if (this.#socket.destroyed)
                return;
            this.#handler.snapshot(message, transfer.pieces, state);
            this.#transfer = { ...newTransfer(), message };
            this.#answer("");
        }, (error) => this.#fail(error));
    }
    #answer(refusal) {
        this.#socket.write(Buffer.concat(frame([welcomeBytes(this.#self, refusal)])));
    }
    get #who() {
        const { remoteAddress, remotePort } = this.#socket;
        const name = this.#hello === undefined ? "somebody" : this.#hello.name;
        return `${name} from ${remoteAddress}:${remotePort}`;
    }
}
