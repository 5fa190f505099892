import torch, time, sys
torch.set_num_threads(int(sys.argv[1]) if len(sys.argv)>1 else 1)
torch.set_grad_enabled(False)
bf=torch.bfloat16
def t(name,f,n=None):
    f();f()
    t0=time.perf_counter();f();d=time.perf_counter()-t0
    n=n or max(3,min(200,int(0.12/max(d,1e-6))))
    best=1e9
    for _ in range(3):
        t0=time.perf_counter()
        for _ in range(n): f()
        best=min(best,(time.perf_counter()-t0)/n)
    print(f"{name:50s} {best*1e6:9.1f} us",flush=True); return best
D,V=256,8000
for R in (4,64,256):
    x=torch.randn(R,D).to(bf)
    for (k,n) in ((256,768),(256,1024),(1024,256),(256,8000)):
        xx=torch.randn(R,k).to(bf); w=torch.randn(n,k).to(bf); b=torch.randn(n).to(bf)
        d=t(f"linear {R}x{k}x{n}",lambda:torch.nn.functional.linear(xx,w,b))
        pw=torch.ops.mkldnn._reorder_linear_weight(w,R)
        d2=t(f"packed {R}x{k}x{n}",lambda:torch.ops.mkldnn._linear_pointwise(xx,pw,b,"none",[],""))
        print("     GFLOP/s plain %.0f packed %.0f"%(2*R*k*n/d/1e9,2*R*k*n/d2/1e9))
try:
    x=torch.randn(256,D).to(bf); w=torch.randn(V,D).to(bf)
    t("mm out_dtype fp32",lambda:torch.mm(x,w.t(),out_dtype=torch.float32))
except Exception as e: print("mm out_dtype",repr(e)[:200])
for R in (4,256):
    s=(torch.randn(R,V)*3).to(bf)
    t(f"{R} topk8",lambda:s.topk(8))
    t(f"{R} topk1/max",lambda:s.max(-1))
    t(f"{R} argmax",lambda:s.argmax(-1))
    t(f"{R} amax",lambda:s.amax(-1))
    for bs in (16,32,64,80):
        t(f"{R} blockmax {bs} last",lambda:s.view(R,V//bs,bs).amax(-1))
        t(f"{R} blockmax {bs} strided",lambda:s.view(R,bs,V//bs).amax(1))
    m=s.view(R,32,250).amax(1)
    m4=m.view(-1,1000)
    t(f"{R} topk8 of 1000 blockmax",lambda:m4.topk(8)) 
    t(f"{R} topk8 of 250 blockmax",lambda:m.topk(8)) 
    f=s.float()
    t(f"{R} float()",lambda:s.float())
    t(f"{R} logsumexp fp32",lambda:s.float().logsumexp(-1))
    t(f"{R} logsumexp of f",lambda:f.logsumexp(-1))
    t(f"{R} log_softmax dtype",lambda:torch.log_softmax(s,-1,dtype=torch.float32))
    t(f"{R} log_softmax of f",lambda:torch.log_softmax(f,-1))
    t(f"{R} softmax dtype",lambda:torch.softmax(s,-1,dtype=torch.float32))
    t(f"{R} softmax bf16",lambda:torch.softmax(s,-1))
    t(f"{R} softmax of f",lambda:torch.softmax(f,-1))
    t(f"{R} log_softmax bf16",lambda:torch.log_softmax(s,-1))
    mx=s.amax(-1,keepdim=True).float()
    def chain():
        y=s.float(); y-=mx; y.exp_(); return y.sum(-1).log()
    t(f"{R} float sub exp sum",chain)
    def chain2():
        y=s-mx; y.exp_(); return y.sum(-1).log()
    t(f"{R} sub exp sum",chain2)
    out=torch.empty(R,V)
    t(f"{R} f exp",lambda:torch.exp(f,out=out))
    def chunked():
        r=[]
        for c in s.split(16): r.append(c.float().logsumexp(-1))
        return torch.cat(r)
    t(f"{R} lse in chunks of 16",chunked)
    def chunked2():
        r=[]
        for c,m in zip(s.split(16),mx.split(16)): r.append((c-m).exp_().sum(-1))
        return torch.cat(r).log()
    t(f"{R} sub exp sum in chunks of 16",chunked2)
    t(f"{R} bf16 exp",lambda:s.exp())
    t(f"{R} bf16 sum dtype fp32",lambda:s.sum(-1,dtype=torch.float32))
    t(f"{R} index_fill clone",lambda:s.index_fill(1,torch.tensor([0,1,3]),-1e9))
# attention shapes
B,H,W,K=64,4,4,64
for M in (16,64,160):
  for dt in (bf,torch.float32):
    q=torch.randn(B*H,W,K).to(dt); k=torch.randn(B*H,M,K).to(dt); v=torch.randn(B*H,M,K).to(dt); kt=torch.randn(B*H,K,M).to(dt)
    a=torch.softmax(torch.randn(B*H,W,M),-1).to(dt)
    t(f"bmm qk {M} {dt}",lambda:torch.bmm(q,k.transpose(1,2)))
    t(f"bmm qk kT stored {M} {dt}",lambda:torch.bmm(q,kt))
    t(f"bmm av {M} {dt}",lambda:torch.bmm(a,v))
    q1=torch.randn(B*H*W,1,K).to(dt); k1=torch.randn(B*H*W,M//W,K).to(dt); a1=torch.randn(B*H*W,1,M//W).to(dt)
    t(f"bmm 1q per row {M//W} {dt}",lambda:torch.bmm(q1,k1.transpose(1,2)))
    t(f"bmm 1q av {M//W} {dt}",lambda:torch.bmm(a1,k1))
    q4,k4,v4=(z.view(B,H,-1,K) for z in (q,k,v)); mask=torch.zeros(B,1,W,M,dtype=dt)
    t(f"sdpa {M} {dt}",lambda:torch.nn.functional.scaled_dot_product_attention(q4,k4,v4,mask))
    s=torch.bmm(q,k.transpose(1,2)).view(B,H,W,M); mk=torch.zeros(B,1,W,M)
    t(f"softmax(s+mask) {M} {dt}",lambda:torch.softmax(s+mk,-1))
    mk2=mk.to(dt)
    t(f"softmax(s+mask in dt) {M} {dt}",lambda:torch.softmax(s+mk2,-1))
    t(f"softmax {M} {dt}",lambda:torch.softmax(s,-1))
R=256
x=torch.randn(R,D); y=torch.randn(R,D).to(bf); ln=torch.nn.LayerNorm(D)
t("to bf16",lambda:x.to(bf)); t("fp32+bf16",lambda:x+y); t("ln fp32",lambda:ln(x)); xb=x.to(bf); t("bf+bf",lambda:xb+y)
lnb=torch.nn.LayerNorm(D).to(bf)
t("ln bf16",lambda:lnb(xb))
t("ln bf16 x, fp32 weight",lambda:torch.nn.functional.layer_norm(xb,(D,),ln.weight,ln.bias))
t("relu_ 256x1024",lambda z=torch.randn(R,1024).to(bf):z.relu_())
x4=torch.randn(4,D)
t("small add",lambda:x4+x4); t("small linear fp32",lambda:torch.nn.functional.linear(x4,ln.weight[None].expand(256,256)))
