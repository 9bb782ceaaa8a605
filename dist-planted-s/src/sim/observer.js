export function emptyEntry() {
    return {
        present: false,
        promisedNumber: 0,
        promisedOwner: "",
        leaseOwner: "",
        leaseNumber: 0,
        leaseSequence: 0,
        leaseUntil: 0,
        leaseEnd: 0,
        released: false,
        token: 0,
        barredOwner: "",
    };
}
/** Hands each event to the observers that care. */
export class Observers {
    sent;
    handled;
    tenureBegan;
    closed;
    looked;
    clockRead;
    crashing;
    started;
    renamed;
    readied;
    claimBegan;
    claimLooked;
    asks;
    answered;
    leads;
    calmEnded;
    constructor(observers) {
        this.sent = hooks(observers, "sent");
        this.handled = hooks(observers, "handled");
        this.tenureBegan = hooks(observers, "tenureBegan");
        this.closed = hooks(observers, "closed");
        this.looked = hooks(observers, "looked");
        this.clockRead = hooks(observers, "clockRead");
        this.crashing = hooks(observers, "crashing");
        this.started = hooks(observers, "started");
        this.renamed = hooks(observers, "renamed");
        this.readied = hooks(observers, "readied");
        this.claimBegan = hooks(observers, "claimBegan");
        this.claimLooked = hooks(observers, "claimLooked");
        this.asks = hooks(observers, "asks");
        this.answered = hooks(observers, "answered");
        this.leads = hooks(observers, "leads");
        this.calmEnded = hooks(observers, "calmEnded");
    }
}
function hooks(observers, name) {
    const found = [];
    for (const observer of observers) {
        const hook = observer[name];
        if (hook !== undefined)
            found.push(hook.bind(observer));
    }
    return found;
}
